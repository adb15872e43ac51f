"""Measures that training takes at every evaluation: loss drop, prefix matching, previous-token attention, copying.

ICL is Olsson et al. 2022, *In-context Learning and Induction Heads*. BOS is the beginning-of-sequence token.
"""
