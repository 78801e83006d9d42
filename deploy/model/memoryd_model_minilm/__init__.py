"""The file model.onnx of memoryd's embedding model; memoryd checks it and reads it."""
