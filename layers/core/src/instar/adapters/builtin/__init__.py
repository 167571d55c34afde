"""The builtin search engine: tantivy for words, NumPy for vectors, a packaged embedder."""
