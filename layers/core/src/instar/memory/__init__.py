"""Markdown documents, their revisions, the index over them: written, found, undone."""
