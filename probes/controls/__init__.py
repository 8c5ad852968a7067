"""Comparison of tables with the effects planted in the control worlds."""
