"""The dataset `corpora`."""
