"""Weights in, numbers out: one idea of the paper a file. Nothing here knows a model, data, config or a file."""
