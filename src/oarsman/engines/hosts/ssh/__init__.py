"""Hosts that are other machines, reached by the system's ssh. Nothing is installed on them."""
