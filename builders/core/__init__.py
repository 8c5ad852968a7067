"""The only code that builders share; it imports nothing else of this project."""
