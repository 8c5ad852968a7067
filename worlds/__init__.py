"""Worlds: control models trained on artificial text with known biases."""
