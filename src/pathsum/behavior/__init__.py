"""Build synthetic sequences, and score what heads and models do on them and on text.

AMF is Elhage et al. 2021, A Mathematical Framework for Transformer Circuits. ICL is Olsson et al. 2022, In-context
Learning and Induction Heads. BOS is the beginning-of-sequence token.
"""
