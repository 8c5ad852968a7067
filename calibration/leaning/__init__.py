"""Outputs of the probes of this study drawn from a known truth, for its analyses."""
