"""Sum one vector per rank across all ranks and check every element of the result."""

import sys
from array import array

from mpi4py import MPI

LENGTH = 100_000
ROUNDS = 20

world = MPI.COMM_WORLD
ranks = world.size
mine = array("d", (world.rank + 1 + i % 7 for i in range(LENGTH)))
total = array("d", bytes(8 * LENGTH))

world.Barrier()
start = MPI.Wtime()
for _ in range(ROUNDS):
    world.Allreduce(mine, total, op=MPI.SUM)
seconds = (MPI.Wtime() - start) / ROUNDS

# rank r contributes (r + 1) + i % 7 to element i
right = all(total[i] == ranks * (ranks + 1) / 2 + ranks * (i % 7) for i in range(LENGTH))
everywhere = world.allreduce(right, op=MPI.LAND)

if world.rank == 0:
    megabytes = 8 * LENGTH / 1e6
    print(f"{ranks} ranks, {megabytes:.1f} MB each: {seconds * 1e3:.2f} ms per allreduce", flush=True)
    print("The sum is right on every rank" if everywhere else "The sum is WRONG", flush=True)
sys.exit(0 if everywhere else 1)
