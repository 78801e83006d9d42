"""All that a store holds, as lines of JSON: to take elsewhere, and to bring in."""
