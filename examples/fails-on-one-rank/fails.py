"""Rank 1 cannot find its part of the data and leaves with code 3; the others wait for it in a barrier.

Under plain mpirun the rank would wait for its peers in MPI's shutdown while they wait for it, and the job would hang.
`python3 -m mpi4py` ends the whole job there; under Oarsman plain python3 does, too.
"""

import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"Rank {world.rank} on {MPI.Get_processor_name()} is up", flush=True)
world.Barrier()
if world.rank == 1:
    print("data/part-1.csv: no such file; rank 1 has nothing to work on", file=sys.stderr, flush=True)
    sys.exit(3)
world.Barrier()
print(f"Rank {world.rank}: this line is never reached", flush=True)
