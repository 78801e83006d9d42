"""Use cases that hide or erase: delete, purge, garbage collection, decay; and the proof that nothing is left."""
