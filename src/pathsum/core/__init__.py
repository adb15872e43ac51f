"""Shared foundations: named axes, frozen weights, low-rank products, files, locks and memory."""
