"""Hand-written forward and backward passes for training. Each is tested against a plain implementation."""
