"""Data: examples with calls at character spans, their readers, and their alignment to tokens."""
