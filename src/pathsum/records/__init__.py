"""Row types of results that one stage writes and another stage reads.

The symbols are those of docs/framework.md. OV (output-value) and QK (query-key) are the two circuits of a head. ICL is
Olsson et al. 2022, *In-context Learning and Induction Heads*. BOS is the beginning-of-sequence token.
"""
