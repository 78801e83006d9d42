"""Readers: small models of our own, the packaged sentence encoder with adapters that are tuned for one question."""
