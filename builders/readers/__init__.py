"""File formats that several datasets share."""
