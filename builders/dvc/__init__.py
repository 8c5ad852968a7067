"""What DVC knows: locks, cache, history."""
