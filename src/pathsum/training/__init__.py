"""Training: the optimizer step, the optimizers, a loop that resumes bit for bit, and the store of runs."""
