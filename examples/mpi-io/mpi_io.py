"""All ranks write one file together, then rank 0 reads it back with ordinary means and checks every number."""

import sys
from array import array
from pathlib import Path

from mpi4py import MPI

NUMBERS = 50_000  # per rank

world = MPI.COMM_WORLD
path = Path(sys.argv[1])
if world.rank == 0:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
world.Barrier()

first = world.rank * NUMBERS
mine = array("i", range(first, first + NUMBERS))
file = MPI.File.Open(world, str(path), MPI.MODE_CREATE | MPI.MODE_WRONLY)
file.Write_at_all(first * mine.itemsize, mine)  # every rank at its own place, all at once
file.Close()
print(f"Rank {world.rank} on {MPI.Get_processor_name()} wrote numbers {first} to {first + NUMBERS - 1}", flush=True)
world.Barrier()

right = True
if world.rank == 0:
    found = array("i")
    found.frombytes(path.read_bytes())
    right = found == array("i", range(world.size * NUMBERS))
    print(f"{path}: {len(found)} numbers, {'all in place' if right else 'NOT as written'}", flush=True)
sys.exit(0 if world.bcast(right) else 1)
