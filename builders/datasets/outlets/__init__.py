"""The dataset `outlets`."""
