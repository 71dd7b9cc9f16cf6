"""Jobs of a Kubernetes cluster."""
