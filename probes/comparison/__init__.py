"""Differences between models run on the same prompts."""
