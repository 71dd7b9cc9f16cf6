"""The command `oarsman`: a file for each verb or a few of a kind, and the few things that all verbs share."""
