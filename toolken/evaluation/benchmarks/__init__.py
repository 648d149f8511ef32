"""Benchmarks: one file each, and one list of them."""
