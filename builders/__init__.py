"""Builders: one module per dataset, from a dated snapshot to a typed, documented folder."""
