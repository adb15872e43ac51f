"""BOS, the beginning-of-sequence token, with which every document and every window starts."""

BOS, BOS_TEXT = 0, "<|bos|>"
