"""The loops that plan and act, and the processes they live in: the supervisor, and the operator on Kubernetes."""
