"""Text in, tokens out: the sources of text, and synthetic text with known structure."""
