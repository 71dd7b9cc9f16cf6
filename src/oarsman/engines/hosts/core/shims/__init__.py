"""Small programs that take the place of ssh, mpirun and the rank's program inside a job.

Each is started as a script by a bare interpreter (`python -I -S`), many times per job, so they
import as little as they can and nothing that is not in the standard library.
"""
