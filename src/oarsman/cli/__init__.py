"""The command `oarsman`: one file per verb, and the few things that all verbs share."""
