"""`oarsman serve` that says, when it is told SIGUSR1, how many objects of each kind it holds."""

from __future__ import annotations

import gc
import json
import runpy
import signal
import sys
from collections import Counter

_OURS = ("oarsman.", "nicegui.", "asyncio.", "_asyncio.", "socketio.", "engineio.", "starlette.", "uvicorn.")


def tell(*_: object) -> None:
    gc.collect()
    kinds = (type(one) for one in gc.get_objects())
    found = Counter(f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
    ours = {name: count for name, count in found.items() if name.startswith(_OURS)}
    sys.stdout.write(f"{json.dumps(ours)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGUSR1, tell)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
