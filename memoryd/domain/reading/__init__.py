"""Use cases that answer: search, list, context; and which memory stands before which."""
