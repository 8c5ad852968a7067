"""The dataset `words`."""
