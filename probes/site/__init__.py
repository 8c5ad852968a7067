"""The report: controls, then the studies, then datasets and versions."""
