"""The report page: controls first, then tables, then what everything was made of."""

from probes.report.page import write

__all__ = ["write"]
