"""Records in, report out: figures draw, claims judge, the document lays out. No model, no corpus, no config."""
