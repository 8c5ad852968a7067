"""What differs between versions, and where a row comes from."""
