"""The daemon. Nothing is imported here: the client loads memoryd.v1 without the server's packages."""
