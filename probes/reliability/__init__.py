"""Reliability of the instrument: sources of variance in its scores."""
