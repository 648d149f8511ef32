"""Recipes: the only place where every part meets; each reads top to bottom."""
