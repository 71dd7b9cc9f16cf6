"""`python -m oarsman.cli` is the command too, where no script is installed."""

from __future__ import annotations

from oarsman.cli.main import main

if __name__ == "__main__":
    main()
