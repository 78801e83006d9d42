"""Where memories last: one protocol, a reference in memory, and DuckDB."""
