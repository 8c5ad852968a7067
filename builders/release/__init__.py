"""Cards, Croissant descriptions, and publishing on the Hub."""
