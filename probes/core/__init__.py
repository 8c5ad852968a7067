"""Runners of probes and analyses; an analysis turns outputs into tables and runs no model."""
