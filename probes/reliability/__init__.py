"""Reliability of the instrument: sources of variance of its scores."""
