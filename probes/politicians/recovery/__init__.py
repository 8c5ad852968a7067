"""Recovery of the study ``politicians``: its tables against what was planted in worlds of names."""

from plumbline.probes.politicians.recovery.control import Params
from plumbline.probes.politicians.recovery.recovery import DATASETS, SCHEMAS, TABLES, run

__all__ = ["DATASETS", "SCHEMAS", "TABLES", "Params", "run"]
