"""Functions that turn weights or attention patterns into numbers, one idea of the paper per file.

AMF is Elhage et al. 2021, A Mathematical Framework for Transformer Circuits; ICL is Olsson et al. 2022, In-context
Learning and Induction Heads. W_QK is a head's query-key matrix, W_OV its output-value matrix, BOS the token that begins
a sequence. The functions take tensors and weights, never a model or its configuration.
"""
