"""Conversations: what is appended, read, found again, summed up and erased."""
