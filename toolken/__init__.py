"""Teach a frozen language model to call tools by training one output row per tool."""
