"""The dataset `names`."""
