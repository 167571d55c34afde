"""The HTTP edge: FastAPI app, routes, socket, page; the only async code."""
