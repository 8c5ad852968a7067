"""The report: controls first, then study by study, then what everything was made of."""
