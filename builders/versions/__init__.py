"""Differences between versions, and the provenance of rows."""
