"""Scenes as data: what a caller asks and is answered, for clients in every language."""
