"""Validation of datasets: Great Expectations suites from schemas and floors."""
