"""Functions that turn weights or attention patterns into numbers, one idea of the paper per file.

AMF is Elhage et al. 2021, A Mathematical Framework for Transformer Circuits. ICL is Olsson et al. 2022, In-context
Learning and Induction Heads. W_QK is a head's query-key matrix, which determines its attention scores. W_OV is its
output-value matrix, which determines what it writes. BOS is the beginning-of-sequence token. The functions take tensors
and weights, never a model or its configuration.
"""
