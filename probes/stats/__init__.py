"""Estimators: pure functions of NumPy arrays, with one topic per file."""
