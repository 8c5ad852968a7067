"""Further training of models."""
