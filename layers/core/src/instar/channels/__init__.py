"""Channels: how a platform's message becomes ours, and our reply becomes theirs."""
