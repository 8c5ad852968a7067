"""The report: controls first, then study by study, then what everything was made of."""

from plumbline.probes.site.build import write

__all__ = ["write"]
