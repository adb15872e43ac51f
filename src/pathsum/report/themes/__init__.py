"""The sections of the report, one theme per file."""
