"""Data: examples with calls at character spans, their readers, prompts, and alignment to tokens."""
