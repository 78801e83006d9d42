"""Figures of the daemon for Prometheus: needs the extra `metrics`."""
