"""Who is meant: the directory of a scope, the finders of names, and the way from a name to an entity."""
