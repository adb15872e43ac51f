"""Statistics of text, without a model: counts of n-grams, smoothed bigram models, entropies, lift of skip-trigrams."""
