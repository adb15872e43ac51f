"""The sections of the report, a theme per file."""
