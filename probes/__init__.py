"""Probes: what is asked of a model, its raw answers, and the tables computed from them."""
