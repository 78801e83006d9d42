"""The per-scope index in memory: rebuilt from the store at will, and never the truth."""
