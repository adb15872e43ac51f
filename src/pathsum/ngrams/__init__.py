"""What the training text alone predicts: n-gram counts, smoothing, entropies."""
