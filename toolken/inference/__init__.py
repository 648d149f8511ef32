"""Decoding with toolkens: a mode machine per question, a backend that batches them, and the engine that drives both."""
