"""What the words of a statement say: language only, no memory, no index, no clock."""
