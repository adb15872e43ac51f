"""Copies of logs and results at Weights & Biases (W&B), and a dashboard that shows them."""
