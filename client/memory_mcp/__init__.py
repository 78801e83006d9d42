"""memoryd as a server of the Model Context Protocol: the command `memory-mcp`."""
