"""Jobs of which it is known beforehand how they end: what went wrong was arranged, and the verdict must say just that.

    python -m tests.arranged --seed 1 --count 300 --on local,ssh --mpi openmpi4,openmpi5,mpich
    python -m tests.arranged --seed 1 --only 17        # one of them again, with its log if it is wrong

- `cases.py`: what a case is, and which one a seed and a number stand for;
- `kinds.py`: the kinds of cases, each a function that draws one and says how it must end;
- `site.py`: this machine and SSH hosts (`ssh_hosts`) with one state and one supervisor for all jobs;
- `meanwhile.py`: what is done to a job while it runs;
- `judge.py`: compares, strictly: state, reason, attempts, and of the cause rank, host, code, signal and hint.

The suite runs a few with a fixed seed (`test_arranged.py`).
"""

import sys
from pathlib import Path

# Tests are no package: pytest finds their packages in this folder, and so must everybody else.
if (_tests := str(Path(__file__).resolve().parents[1])) not in sys.path:
    sys.path.append(_tests)
