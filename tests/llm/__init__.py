"""A real language model: SmolLM2-135M, served on loopback by llama.cpp."""
