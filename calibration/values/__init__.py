"""Responses to statements drawn from a known truth, for the analysis of this study."""
