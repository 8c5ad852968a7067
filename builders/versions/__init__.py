"""Differences between versions, and provenance of rows."""
