"""Hidden by the function's module of this name."""

ORIGIN = "layer"
