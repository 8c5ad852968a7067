"""Code shared by all builders; it imports nothing else from this project."""
