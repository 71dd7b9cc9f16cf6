"""Ask discover_hosts.sh again and again, as an elastic trainer does, and print the hosts whenever they change."""

import argparse
import subprocess
import time

DISCOVER = "/etc/mpi/discover_hosts.sh"

options = argparse.ArgumentParser(description=__doc__)
options.add_argument("--seconds", type=float, default=60, help="stop after this time")
options.add_argument("--changes", type=int, default=2, help="or after this many changes")
asked = options.parse_args()


def hosts() -> list[str]:
    return subprocess.run([DISCOVER], check=True, capture_output=True, text=True).stdout.split()


known = hosts()
print(f"{len(known)} hosts: {' '.join(known)}", flush=True)
end = time.monotonic() + asked.seconds
changes = 0
while changes < asked.changes and time.monotonic() < end:
    time.sleep(0.1)
    now = hosts()
    if now != known:
        came, went = [h for h in now if h not in known], [h for h in known if h not in now]
        words = [*(f"+{host}" for host in came), *(f"-{host}" for host in went)]
        print(f"{len(now)} hosts: {' '.join(now)} ({' '.join(words)})", flush=True)
        known, changes = now, changes + 1
print(f"{changes} changes seen", flush=True)
