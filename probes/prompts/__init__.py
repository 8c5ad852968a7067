"""Prompt templates, a module a study."""
