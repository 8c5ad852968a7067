"""Prompt templates, a module a study."""

BARE = "bare"  # the frame of a name alone: Stańczak et al. (2023), section 3
