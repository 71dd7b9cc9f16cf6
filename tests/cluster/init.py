"""The first process of a world. It collects orphans, and when its owner is gone it ends, and with it all in the world.

init.py tied       ends when its standard input does: the other end of that pipe closes however the owner dies
init.py detached   ends when it is killed
"""

import contextlib
import os
import signal
import sys


def collect(*_: object) -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def main() -> None:
    signal.signal(signal.SIGCHLD, collect)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(1, b"ready\n")
    os.close(1)
    if sys.argv[1] == "tied":
        while os.read(0, 1):
            pass
    else:
        while True:
            signal.pause()


main()
