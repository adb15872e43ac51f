"""What a model does on text and on generated sequences: attention patterns and losses in, scores out."""
