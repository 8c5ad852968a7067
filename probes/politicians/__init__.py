"""Gender bias towards politicians (Stańczak et al. 2023)."""
