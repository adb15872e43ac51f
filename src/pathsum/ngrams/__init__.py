"""Statistics of the training text alone: counts of n-grams, smoothed bigram models, entropies."""
