"""The report, a theme a file: what it says, shows and tabulates."""
