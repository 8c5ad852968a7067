"""The dataset `emotions`."""
