"""What jobs on hosts have in common, wherever the hosts are: the job agent, the shims, the journal."""
