"""The `memoryd` command, one module for each family of subcommands."""
