"""Shared code for word analyses: lists, counts, resampling, shares of sentiments."""
