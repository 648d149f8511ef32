"""Evaluation: benchmarks, the methods that answer them, scoring, and reports on runs and on methods side by side."""
