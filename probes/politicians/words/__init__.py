"""What analyses of words share: lists and counts, their resampling, shares of sentiments."""
