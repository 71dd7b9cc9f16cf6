"""Passwordless logins between all hosts of an inventory: set up from one machine, and taken back."""
