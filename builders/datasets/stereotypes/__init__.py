"""The dataset `stereotypes`."""
