"""Tools: what a model or an outside caller may have done, under one policy."""
