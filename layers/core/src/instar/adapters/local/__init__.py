"""Adapters of the embedded way to run: folders and SQLite, durable."""
