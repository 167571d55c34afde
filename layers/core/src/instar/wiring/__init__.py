"""Composition: one module per entry point; the only code that names adapters."""
