"""Compute the records of a trained model. Modules with a function ``tables`` compute those of one topic each, and
``cell`` combines them.
"""
