"""Recovery of the study ``politicians``: its tables against what was planted in worlds of names."""

from plumbline.probes.politicians.recovery.recovery import SCHEMAS, TABLES, Params, run

__all__ = ["SCHEMAS", "TABLES", "Params", "run"]
