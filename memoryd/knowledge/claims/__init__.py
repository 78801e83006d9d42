"""What a statement says of whom: subject, attribute, value."""
