"""One client per source: ``fetch`` saves what the source sent under ``data/raw/SOURCE/DATE``."""
