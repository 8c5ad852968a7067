"""Recovery of the study ``politicians``: its tables against what was planted in worlds of names."""

from plumbline.probes.politicians.recovery.recovery import DATASETS, SCHEMAS, TABLES, run
from plumbline.probes.politicians.recovery.truth import truth

__all__ = ["DATASETS", "SCHEMAS", "TABLES", "run", "truth"]
