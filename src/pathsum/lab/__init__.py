"""Pack trained models for the report, where they run in the reader's browser."""
