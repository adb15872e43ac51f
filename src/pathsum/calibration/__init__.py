"""Precision and recall of each detector, measured on models that are trained on synthetic text
(docs/framework.md §11)."""
