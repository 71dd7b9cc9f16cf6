"""Run every benchmark, or those named: `make bench ARGS='startup many_jobs'`."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

CLAIMS = ["startup", "run_overhead", "log_throughput", "many_jobs", "kube_operator", "console", "ssh"]


def main() -> int:
    wanted = sys.argv[1:] or CLAIMS
    unknown = [name for name in wanted if name not in CLAIMS]
    if unknown:
        sys.exit(f"no such benchmark: {' '.join(unknown)}; there are {', '.join(CLAIMS)}")
    print(f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    codes = []
    for name in wanted:
        sys.stdout.flush()
        codes.append(subprocess.run([sys.executable, Path(__file__).with_name(f"{name}.py")], check=False).returncode)
        print()
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
