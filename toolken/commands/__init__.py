"""Subcommands: each module has the arguments of its commands as models, and what they do."""
