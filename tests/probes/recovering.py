"""Holding the tables of an analysis against what was planted, as the pipeline does."""

from plumbline.probes.politicians import recovery


def recovered(inputs, analysis, found, model="m"):
    """Write the tables of an analysis, and hold them against what was planted."""
    folder = inputs.tables(analysis, model)
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in found.items():
        table.write_parquet(folder / f"{name}.parquet")
    return recovery.run(inputs, recovery.Params())[analysis]
