"""Predictions for texts with other names, drawn from a known truth."""
