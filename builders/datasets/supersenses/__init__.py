"""The dataset `supersenses`."""
