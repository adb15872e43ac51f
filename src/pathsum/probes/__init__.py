"""Behavioral measures, most of them taken at every evaluation during training: in-context loss drop, losses on repeated
random tokens, prefix matching, copying, attention by position.

ICL is Olsson et al. 2022, *In-context Learning and Induction Heads*. BOS is the beginning-of-sequence token.
"""
