"""Training: one function, resumable to the bit, whose log and checkpoints are the record of how circuits form."""
