"""Models that were trained elsewhere, with the interface ``AttentionOnly``, and the text that they are run on.

b_U, b_V and b_O are biases of the unembedding, the values and the outputs. BOS is the beginning-of-sequence token.
"""
