"""Provide published estimates for public models, for comparison with new results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.builders.core.errors import UserError

if TYPE_CHECKING:
    import polars as pl


def published(study: str = "") -> pl.DataFrame:
    """Return published estimates for public models from the papers of the studies.

    They are based on the papers' data and on the method variants named `faithful` or `plug-in`
    here, and have no intervals. Results on the sample data also differ from them for reasons other
    than the model.

    - Stańczak et al. (2023), PLoS ONE 18(11), Tab 5 and Tab 8: shares of sentiments by architecture
      at the baseline size (for multilingual models, in Arabic), computed as intercept plus effect.
    - Choenni et al. (2021), EMNLP, Table 4: change in mean rank correlation of emotions, one epoch.
    - Barriere and Cifuentes (2024), EMNLP, Tables 1 to 5: estimates in points and in percent. The
      57 cells that are printed in two tables have a row for each table.
    - Feng et al. (2023), ACL, Table 12: precision and recall of RoBERTa classifiers by group and
      by the corpus of further pretraining. The paper shows the positions of models in figures only.
    - Al Ali and Libovický (2024), LREC-COLING, section 3.1: correlations for RobeCzech, by gender;
      the table `calibration` of a run has them for its models. The ratings are not included.

    Parameters
    ----------
    study
        Name of a study; by default, all studies with published numbers.

    Returns
    -------
    polars.DataFrame
        Columns: ``study``, ``model`` (a Hub id, or the paper's name for an architecture),
        ``language``, ``measure``, ``what``, ``value``, ``unit``, ``source``.

    Raises
    ------
    UserError
        If no numbers are available for the study.

    Examples
    --------
    >>> rows = published("nationality")
    >>> rows.filter(measure="change of P+ - P- with names", what="India")["value"].to_list()
    [-2.7]
    """
    import polars as pl

    from plumbline.probes.leaning import fairness

    key = {"study": "leaning", "model": "FacebookAI/roberta-base", "language": "en"}
    key |= {"unit": "percent", "source": "Feng et al. 2023, Table 12"}
    rows = [
        key | {"measure": f"{measure} of {task}", "what": f"{corpus}, {group}", "value": value}
        for (task, corpus, group, measure), value in fairness.published().items()
    ]
    table = pl.read_csv(Path(__file__).with_name("published.csv"))
    table = pl.concat([table, pl.DataFrame(rows).select(table.columns)])
    if study and study not in (studies := table["study"].unique().sort().to_list()):
        raise UserError(f"reference: no numbers for {study!r}; available: {', '.join(studies)}")
    return table.filter(study=study) if study else table
