"""Where the command begins, as `oarsman` and as `python -m oarsman.cli`."""

from __future__ import annotations

import sys


def main() -> None:
    """Ctrl-C while modules are still being imported ends it without a traceback, as it does later."""
    try:
        from oarsman.cli.main import cli

        cli.main()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
