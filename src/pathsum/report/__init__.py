"""The report, made from records and verdicts alone. This package reads no model, no corpus and no configuration."""
