"""memoryd beside other stores of memories: the same texts, the same model, the same run; see __main__.py."""
