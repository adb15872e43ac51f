"""Measure precision and recall of each detector on models that are trained on synthetic text (docs/framework.md
§11)."""
