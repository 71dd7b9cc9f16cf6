"""What engines say, in the reader's language. Sentences are kept and sent in English; only faces translate them."""

from oarsman.service.spoken.speaking import in_chinese

__all__ = ["in_chinese"]
