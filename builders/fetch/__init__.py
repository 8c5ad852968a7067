"""Code shared by the clients, which save a source's responses under ``data/raw/SOURCE/DATE``."""
