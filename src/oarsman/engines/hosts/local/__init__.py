"""Hosts made of processes of this machine."""
