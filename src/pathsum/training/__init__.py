"""Training: step, optimizers, a loop that resumes to the same bits, and the store of runs."""
