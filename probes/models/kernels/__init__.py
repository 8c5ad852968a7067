"""Speed-ups of the forward pass."""
