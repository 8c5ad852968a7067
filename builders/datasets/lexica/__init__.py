"""The dataset `lexica`."""
