"""Tokens as training and analysis read them: windows, counts, curriculum, repeated random tokens."""
