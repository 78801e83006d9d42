"""The inspector: pages for the host, which show what an agent's memory holds and why, and let it be put right."""
