"""Intervals, null distributions, change points."""
