"""The planted world: a synthetic language with known biases, and tiny models trained on it."""
