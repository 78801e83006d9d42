"""The `memory` command: the memory of the one who runs it, from a shell."""
