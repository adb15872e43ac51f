"""Models that were trained elsewhere, and the text that they are run on. BOS is the beginning-of-sequence token."""
