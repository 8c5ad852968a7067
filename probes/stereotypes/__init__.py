"""Stereotypes suggested by search engines, and emotions (Choenni et al. 2021)."""
