"""The web console: a REST API and pages, for one machine, SSH hosts or a cluster."""
