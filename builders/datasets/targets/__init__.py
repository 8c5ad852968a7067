"""The dataset `targets`."""
