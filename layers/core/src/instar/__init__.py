"""Instar: a personal AI agent that remembers in Markdown and can undo what it wrote."""

__version__ = "0.1.0"
