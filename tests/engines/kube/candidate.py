"""A process that stands for election and says `beat <seconds>`, on the machine's clock, while it may lead."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from pathlib import Path

from oarsman.engines.kube.client import Kube, load_access
from oarsman.engines.kube.lease import Election, LeadershipLost, steady_clock


async def main(kubeconfig: str, namespace: str, name: str, master: str = "") -> None:
    access = load_access(kubeconfig=Path(kubeconfig), master=master or None)
    async with Kube(access) as kube:
        election = Election(kube, namespace=namespace, identity=name, duration=3, renew_deadline=2, retry=0.4)

        async def lead() -> None:
            print("leads", flush=True)
            while election.leading:
                print(f"beat {steady_clock():.6f}", flush=True)
                await asyncio.sleep(0.02)
            await asyncio.Event().wait()

        term = asyncio.create_task(election.run(lead))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, term.cancel)
        try:
            await term
        except asyncio.CancelledError:
            print("stopped", flush=True)
        except LeadershipLost as error:
            print(f"lost {error.message}", flush=True)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main(*sys.argv[1:]))
