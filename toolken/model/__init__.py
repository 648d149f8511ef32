"""The frozen base model and the trained rows beside its head."""
