"""Records in, report out: figures draw, claims judge, the document lays out. Nothing here touches a model or a corpus."""
