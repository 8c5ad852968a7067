"""Lists of words drawn from a known truth, for the analyses of this study."""
