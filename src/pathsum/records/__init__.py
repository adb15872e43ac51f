"""Row types of results that one stage writes and another reads, in the symbols of docs/framework.md."""
