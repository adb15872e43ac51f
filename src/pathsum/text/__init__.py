"""Tokens for training and analysis: tokenizer, token files, windows, counts, repeats, repeated random tokens."""
