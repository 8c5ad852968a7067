"""The dataset `survey`."""
