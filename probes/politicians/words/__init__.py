"""Code shared by the analyses of words: lists, counts, resampling and shares of sentiments."""
