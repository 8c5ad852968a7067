"""Outputs of two models drawn from a known truth, for their comparison."""
