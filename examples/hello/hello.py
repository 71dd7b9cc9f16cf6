"""Every rank says who it is and where it runs."""

from mpi4py import MPI

world = MPI.COMM_WORLD
print(f"Hello from rank {world.rank} of {world.size} on {MPI.Get_processor_name()}", flush=True)
