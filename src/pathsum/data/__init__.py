"""Tokens for training and analysis: windows, counts, curriculum, repeated random tokens."""
