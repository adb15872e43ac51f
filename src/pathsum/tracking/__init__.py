"""Copies of logs and results at Weights & Biases (W&B): runs and dashboard."""
