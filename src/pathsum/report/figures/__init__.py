"""Figures from records. They select rows and compute the aggregates that a line or an interval shows."""
