"""Evaluation: scoring of answers and reports of runs."""
