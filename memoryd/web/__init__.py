"""What every server of HTTP of this project shares: where it listens, what a connection and a body may cost."""
