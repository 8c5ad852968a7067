"""Reliability of the instrument: what its scores vary with."""
