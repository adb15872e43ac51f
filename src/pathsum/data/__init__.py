"""Tokens for training and analysis: tokenizer, token files, windows, counts, curriculum, repeated random tokens."""
