"""Adapters to AWS services."""
