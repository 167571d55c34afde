"""Adapters to language models."""
