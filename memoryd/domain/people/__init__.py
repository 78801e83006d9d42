"""Use cases for the people and things that memories name."""
