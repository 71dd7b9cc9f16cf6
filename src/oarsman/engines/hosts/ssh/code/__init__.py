"""The folder of a job on hosts that do not share it: what of it is copied, and how a copy is brought up to date."""
