"""The beginning-of-sequence token, which every document and every window starts with."""

BOS, BOS_TEXT = 0, "<|bos|>"
