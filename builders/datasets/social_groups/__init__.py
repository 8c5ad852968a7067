"""The dataset `social_groups`."""
