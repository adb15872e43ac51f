"""The frozen rows that a stage writes and a later stage reads."""
