"""The report: controls first, then study by study, then what everything was made of."""

from probes.report.site import write

__all__ = ["write"]
