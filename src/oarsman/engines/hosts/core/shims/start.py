"""`python -I -S start.py NAME arguments...`: the one script behind all shims and the job agent."""

import os
import sys

# Without site-packages only the standard library is importable; add the package itself and nothing else.
_PACKAGE_ROOT = os.path.abspath(__file__)
for _ in range(6):
    _PACKAGE_ROOT = os.path.dirname(_PACKAGE_ROOT)
sys.path.insert(0, _PACKAGE_ROOT)


def _main() -> None:
    name = sys.argv.pop(1)
    if name == "rank":
        from oarsman.engines.hosts.core.shims.rank import main
    elif name == "ssh":
        from oarsman.engines.hosts.core.shims.ssh import main
    elif name == "mpirun":
        from oarsman.engines.hosts.core.shims.mpirun import main
    elif name == "confined":
        from oarsman.engines.hosts.core.confine import main
    else:  # job-agent
        from oarsman.engines.hosts.daemon import main
    main()


_main()
