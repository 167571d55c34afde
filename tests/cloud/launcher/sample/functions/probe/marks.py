"""The layer has a module of this name too: the function's own must be found first."""

ORIGIN = "function"
