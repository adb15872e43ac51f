"""Trained models packed for the page, where they run."""
