"""Checks across the rows of each dataset."""
