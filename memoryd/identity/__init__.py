"""Who comes through which door: grants, sessions, sockets and tokens."""
