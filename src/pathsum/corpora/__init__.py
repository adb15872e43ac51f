"""Read or generate the text of a corpus, and write it as tokens."""
