"""The framework's own transformer: attention only, untied, no biases, positions in the attention scores alone."""
