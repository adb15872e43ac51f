"""Weights and text from elsewhere, behind one protocol. b_U, b_V and b_O are biases; BOS begins a sequence."""
