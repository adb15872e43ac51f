"""Weights & Biases as a mirror of the log: runs and dashboard."""
