"""Simulated responses."""
