"""Measures of every evaluation in training: loss drop, prefix matching, previous-token attention.

ICL is Olsson et al. 2022, In-context Learning and Induction Heads; BOS the beginning-of-sequence token.
"""
