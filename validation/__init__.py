"""Validation of datasets by Great Expectations suites, derived from schemas and minimum values."""
