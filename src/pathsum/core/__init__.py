"""Shared foundations: axis names, weights, low-rank products, files, locks and memory."""
