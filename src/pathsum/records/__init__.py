"""The frozen rows that one stage writes and another reads.

OV (output-value) and QK (query-key) are the circuits of a head; ICL is Olsson et al. 2022; BOS is the
beginning-of-sequence token.
"""
