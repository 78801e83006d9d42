"""Notes: what is put, read, moved and erased by its path."""
