"""Adapters to chat platforms."""
