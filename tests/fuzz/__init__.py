"""Manifests and API calls that nobody would write, sent to the real server: it must stay unmoved.

    python -m tests.fuzz --seed 1 --manifests 5000 --calls 5000
    python -m tests.fuzz --seed 1 --only manifest:17 call:4711      # some of them again

- `odd.py`: values that break programs: texts, numbers, pieces of YAML;
- `manifests.py`: which manifest a seed and a number stand for: the examples, changed in structure and bytes;
- `calls.py`: the same for calls, of these kinds:
  - `routes.py`: every route of the description, with parameters and bodies that are nearly right;
  - `described.py`: what Schemathesis makes of the description;
  - `strange.py`: methods, headers, paths and bytes that no description has; pages; false credentials;
  - `sockets.py`: web sockets and what is sent through them;
- `wire.py`: sends bytes as they are, and reads what comes back;
- `site.py`: `oarsman serve` with accounts and jobs; `watched.py` tells what it starts and opens;
- `library.py`: a manifest through the loader and everything that shows its problems, in this process;
- `judge.py`: what must hold after each of them, whoever sent it: nobody, a viewer or a user.

An answer is never 5xx, comes in time, shows no traceback and no secret. Who may not change anything has changed
nothing, started no process and had no file opened. The suite sends a few with a fixed seed (`test_fuzz.py`).
"""

import sys
from pathlib import Path

# Tests are no package: pytest finds their packages in this folder, and so must everybody else.
if (_tests := str(Path(__file__).resolve().parents[1])) not in sys.path:
    sys.path.append(_tests)
