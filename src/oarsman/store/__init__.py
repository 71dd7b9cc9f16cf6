"""Memory of the bare engines: jobs and events in SQLite, logs as files.

The store plays the part the API server plays on Kubernetes: faces write what is wanted, the
supervisor writes what it became, and both survive being killed at any line.
"""
