"""What memoryd decides: pipelines over ports; no protobuf, no clock, no environment."""
