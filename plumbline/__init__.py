"""Versioned datasets, probes and tables for measuring bias in language models."""
