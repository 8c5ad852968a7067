"""Sections, tables and figures of the report."""
