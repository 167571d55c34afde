"""Talking to a language model: the port, its request and events, and wrappers around any model."""
