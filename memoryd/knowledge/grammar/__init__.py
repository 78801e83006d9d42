"""Words: stems, names, relations, numbers, relative times, and what of a text carries meaning."""
