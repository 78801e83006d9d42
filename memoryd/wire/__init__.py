"""Values to protobuf messages and back, for the service and the client."""
