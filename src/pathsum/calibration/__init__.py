"""Precision and recall of each detector on models of synthetic text (docs/framework.md §11)."""
