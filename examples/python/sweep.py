"""Several jobs at a time from one event loop; the one that fails says why and the others go on.

python examples/python/sweep.py
"""

# prints: seed 3 failed: rank 0

import asyncio

from oarsman import AsyncClient, JobFailed

SCRIPT = 'echo "result for $SEED"; test "$SEED" != 3'


async def one(client: AsyncClient, seed: int) -> str:
    try:
        job = await client.run(["sh", "-c", SCRIPT], name=f"seed-{seed}", workers=1, env={"SEED": seed}, progress=False)
    except JobFailed as failed:
        return f"seed {seed} failed: rank {failed.rank}, code {failed.exit_status}"
    return "; ".join([line.text async for line in job.logs(rank=0)])


async def main() -> None:
    async with AsyncClient() as client:
        for line in await asyncio.gather(*(one(client, seed) for seed in range(1, 4))):
            print(line)


asyncio.run(main())
