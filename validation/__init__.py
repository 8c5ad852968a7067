"""Validation: schema and floors become Great Expectations suites; nothing unvalidated is probed."""
