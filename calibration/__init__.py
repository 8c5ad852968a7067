"""Calibration: size, power and coverage of the tests of each analysis, by simulation."""
