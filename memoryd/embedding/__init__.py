"""From text to vectors: a packaged model, a directory, an endpoint, or nothing."""
