"""Use cases that add or change statements: add, correct, confirm, restore; and how a statement is judged."""
