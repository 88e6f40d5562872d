"""Measurements: each prints a table and JSON, and compares within one run, since machines are noisy."""
