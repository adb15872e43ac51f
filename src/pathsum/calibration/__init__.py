"""Measure how far each detector can be trusted, on models trained on synthetic text with known structure."""
