"""The door of HTTP: the Connect protocol, unary, in JSON and binary, made from the descriptors of the contract."""
