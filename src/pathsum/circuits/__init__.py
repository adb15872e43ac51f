"""Weights or attention patterns in, numbers out: one idea of the paper per file.

AMF is Elhage et al. 2021, A Mathematical Framework for Transformer Circuits; ICL is Olsson et al. 2022, In-context
Learning and Induction Heads. W_QK (query-key) is what scores are made of, W_OV (output-value) what is moved, BOS the
beginning-of-sequence token. Nothing here depends on a model, data, configuration or files.
"""
