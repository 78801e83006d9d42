"""Use cases that answer: search, list, history; and which memory stands before which."""
