"""Cards, Croissant and the Hub."""
