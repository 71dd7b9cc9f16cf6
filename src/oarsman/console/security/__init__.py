"""Who comes in: accounts, sessions, tokens, one-time links, and the gate that asks for them.

Nothing here is imported before it is used: `oarsman tokens` needs no web framework.
"""
