"""The dataset `counterfactuals`."""
