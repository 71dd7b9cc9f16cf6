"""Jobs on this machine and on SSH hosts, while whatever runs them is killed, halted, short of disk or of another time.

    python -m tests.kills --seed 1 --jobs 200 --kills 500 --on local,ssh       # as root, at the top of the repository

Jobs and troubles come from the seed; the moments are those of the machine, so a seed that found something is run again
rather than replayed. What each part is for:

- jobs.py        what jobs there are, and how each is meant to end;
- parts.py       finds what lives: supervisor, job agents, hosts, host agents, connections, launchers, ranks;
- troubles.py    `kill -9`, SIGSTOP for a moment, a clock that is set, a disk that is full; notes whom each of them hit;
- judge.py       whether a job ended right, once, given what hit it;
- leftovers.py   whether anything is there after `delete`: process, mount, control group, file;
- crowd.py       hands in, suspends, stops and deletes, as users would, some jobs at a time.

What hits only the supervisor, or only takes time, must not change anything. What kills a part of a job may cost it one
attempt, and nothing more: one that has attempts left ends as it was meant to. No two attempts run at the same time, no
attempt runs that the record does not have, each end is on record once, and success is the success of every rank.
"""

import sys
from pathlib import Path

# Tests are no package: pytest finds their packages in this folder, and so must everybody else.
if (_tests := str(Path(__file__).resolve().parents[1])) not in sys.path:
    sys.path.append(_tests)
