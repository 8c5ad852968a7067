"""Differences between models that were asked the same."""
