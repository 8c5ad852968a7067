"""The dataset `politicians`."""
