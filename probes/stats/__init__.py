"""Estimators: one per file, pure functions of NumPy arrays."""
