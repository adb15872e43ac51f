"""Behavior on text and synthetic sequences: attention patterns and losses in, scores out.

AMF is Elhage et al. 2021, A Mathematical Framework for Transformer Circuits; ICL is Olsson et al. 2022, In-context
Learning and Induction Heads; BOS is the beginning-of-sequence token.
"""
