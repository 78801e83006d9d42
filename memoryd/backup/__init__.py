"""Backups: chains of a database's file, what changed of it, and its log, from which every transaction is reached."""
