"""Analyses: one module each, from outputs to tables. No analysis ever runs a model."""
