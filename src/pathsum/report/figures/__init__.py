"""Figures of the report. Each selects rows of the records and computes the means and intervals that it shows."""
