"""Comparison of tables with the known effects of control models (worlds)."""
