"""Adapters: every kind of language model, with the interface in ``scorer``."""
