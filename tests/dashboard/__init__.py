"""The dashboard of deploy/grafana, over a daemon under load: real Prometheus asks, and what it answers is drawn."""
