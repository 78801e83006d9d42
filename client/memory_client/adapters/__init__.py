"""
memoryd under the interfaces of other libraries, each in a module of its own that imports its library.

A library is imported with its adapter only: the client itself needs grpcio, protobuf and googleapis-common-protos.
"""
