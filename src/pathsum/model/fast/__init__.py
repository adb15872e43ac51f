"""Hand-written forward and backward passes for training, each tested against the plain reference."""
