"""A Python function on every rank: each counts points in a quarter of a circle, the caller adds them up.

python examples/python/pi.py
"""

# prints: pi is about 3.1

from oarsman import Client, MPIJob


def count(points: int) -> None:
    import random

    inside = sum(random.random() ** 2 + random.random() ** 2 <= 1 for _ in range(points))
    print("inside", inside)


POINTS, WORKERS = 100_000, 2

with Client() as client:
    job = client.run(MPIJob.from_function(count, args=[POINTS], workers=WORKERS))
    inside = sum(int(line.text.split()[1]) for line in job.logs(search="inside"))
    print(f"pi is about {4 * inside / (POINTS * WORKERS):.2f}")
