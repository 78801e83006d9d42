"""Generated from proto/memoryd/v1 by `make proto`; not edited."""
