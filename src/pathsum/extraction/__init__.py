"""Compute the records of a trained model. Each module with a function ``tables`` computes the records of one topic, and
``cell`` combines them.
"""
