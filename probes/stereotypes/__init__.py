"""Stereotypes from search engines and emotions (Choenni et al. 2021)."""
