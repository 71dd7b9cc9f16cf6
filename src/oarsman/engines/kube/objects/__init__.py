"""The Kubernetes objects of a job, one file each. Pure: from a job to what is sent to the API server."""
