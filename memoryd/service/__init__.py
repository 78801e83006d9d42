"""gRPC shells: convert, call, convert. Whatever needs an `if` lies below."""
