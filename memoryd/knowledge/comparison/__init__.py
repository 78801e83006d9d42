"""How one statement stands to another: the same, a change, a doubt, or apart."""
