"""Nationality bias in names (Barriere and Cifuentes 2024)."""
