"""Shared code of analyses of words: lists, counts, resampling, shares of sentiments."""
