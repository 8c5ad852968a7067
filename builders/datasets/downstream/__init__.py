"""The dataset `downstream`."""
