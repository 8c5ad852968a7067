"""Adapters: every kind of language model behind the one contract in ``scorer``."""
