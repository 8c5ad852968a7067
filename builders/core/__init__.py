"""Common code of all builders, which imports nothing else from this project."""
