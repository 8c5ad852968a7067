"""Analyses, one module each, turn outputs into tables. No analysis runs a model."""
