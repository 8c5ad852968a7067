"""Estimators: one a file, pure functions of numpy arrays."""
