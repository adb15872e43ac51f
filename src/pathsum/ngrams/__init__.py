"""Predictions from the training text alone: n-gram counts, smoothing, entropies."""
