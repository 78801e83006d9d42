"""The audit log: writing it and reading it."""
