"""The claims of a statement: subject, attribute, value."""
