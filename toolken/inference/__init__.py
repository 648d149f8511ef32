"""Inference: the mode machine, its backends, and the engine that drives them."""
