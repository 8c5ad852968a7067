"""Validation of datasets with Great Expectations suites, derived from schemas and limits."""
