"""Comparison of tables with what was planted in the worlds of controls."""
