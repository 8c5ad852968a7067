"""Lists of words for social groups drawn from a known truth, for the analyses of this study."""
