"""The words that the rules know: each table is read once, from one file."""
