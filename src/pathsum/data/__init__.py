"""Text in, token windows out: corpora, tokenizer, token files, windows, what the corpus itself says, test sequences."""
