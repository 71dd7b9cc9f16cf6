"""Here, where nothing else is: everybody needs it, and `oarsman` itself names everybody."""

__version__ = "0.1.0"
