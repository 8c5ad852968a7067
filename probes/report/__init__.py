"""Views and figures of the report."""
