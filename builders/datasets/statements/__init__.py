"""The dataset `statements`."""
