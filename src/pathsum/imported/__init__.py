"""Models trained elsewhere, read through the ``AttentionOnly`` protocol, and the text they are run on.

b_U, b_V and b_O are biases; BOS is the beginning-of-sequence token.
"""
