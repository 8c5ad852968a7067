"""Validation of datasets: Great Expectations suites from schemas and minimum values."""
