"""Compute the records of a trained model: each file computes the tables of one topic, and ``cell`` combines them."""
