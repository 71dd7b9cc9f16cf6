"""Data-parallel training on made-up images, in the words of the TensorFlow benchmarks.

Every rank computes the gradient of a small softmax classifier on its own batch; the gradients are averaged with
one allreduce per step, as Horovod does. The buffer that travels is a hundredth of the named model's size, so that
the network is used in proportion. The loss really falls, and at the end all ranks must hold the same weights.
The speed says something about this machine and its MPI, and nothing about the real model.
"""

import argparse
import math
import random
import statistics
import sys
import time
from array import array

from mpi4py import MPI

FEATURES, CLASSES, RATE = 32, 4, 0.5
PARAMETERS = {"trivial": 100_000, "resnet50": 25_600_000, "resnet101": 44_500_000, "vgg16": 138_000_000}


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=sorted(PARAMETERS), default="resnet101")
    parser.add_argument("--batch_size", type=int, default=64, help="images per rank and step")
    parser.add_argument("--num_batches", type=int, default=100)
    parser.add_argument("--num_warmup_batches", type=int, default=10)
    parser.add_argument("--display_every", type=int, default=10)
    parser.add_argument("--variable_update", choices=["horovod"], default="horovod", help="kept for the launch line")
    return parser.parse_args()


def image(source: random.Random, centres: list[list[float]]) -> tuple[list[float], int]:
    label = source.randrange(CLASSES)
    return [centre + source.gauss(0, 1) for centre in centres[label]], label


def gradient(weights: array, images: list[tuple[list[float], int]], into: array) -> float:
    """Fill `into` with the gradient and return the loss, both averaged over the images."""
    sums = [0.0] * (FEATURES * CLASSES)
    loss = 0.0
    for pixels, label in images:
        scores = [
            sum(w * x for w, x in zip(weights[c * FEATURES : (c + 1) * FEATURES], pixels, strict=True))
            for c in range(CLASSES)
        ]
        top = max(scores)
        powers = [math.exp(score - top) for score in scores]
        total = sum(powers)
        loss -= math.log(powers[label] / total)
        for c in range(CLASSES):
            error = powers[c] / total - (c == label)
            for f, pixel in enumerate(pixels):
                sums[c * FEATURES + f] += error * pixel
    for i, value in enumerate(sums):
        into[i] = value / len(images)
    return loss / len(images)


def line(step: int, speeds: list[float], loss: float) -> str:
    mean, middle = statistics.fmean(speeds), statistics.median(speeds)
    uncertainty = statistics.pstdev(speeds) / math.sqrt(len(speeds))
    jitter = 1.4826 * statistics.median(abs(speed - middle) for speed in speeds)
    return f"{step}\timages/sec: {mean:.1f} +/- {uncertainty:.1f} (jitter = {jitter:.1f})\t{loss:.3f}"


def main() -> int:
    asked = parse()
    world = MPI.COMM_WORLD
    leader = world.rank == 0
    centres_source, source = random.Random(0), random.Random(1 + world.rank)
    centres = [[centres_source.gauss(0, 0.3) for _ in range(FEATURES)] for _ in range(CLASSES)]
    images = [image(source, centres) for _ in range(asked.batch_size)]
    weights = array("f", bytes(4 * FEATURES * CLASSES))
    buffer = array("f", bytes(4 * max(len(weights), PARAMETERS[asked.model] // 100)))

    if leader:
        print(f"Model:       {asked.model} (stand-in: {len(weights)} weights, {4 * len(buffer)} bytes per allreduce)")
        print("Mode:        training\nData:        synthetic")
        print(f"Batch size:  {asked.batch_size * world.size} global / {asked.batch_size} per rank")
        print(f"Ranks:       {world.size}\nVariables:   {asked.variable_update}", flush=True)

    def step() -> float:
        loss = gradient(weights, images, buffer)
        world.Allreduce(MPI.IN_PLACE, buffer, op=MPI.SUM)
        for i in range(len(weights)):
            weights[i] -= RATE * buffer[i] / world.size
        return loss

    for _ in range(asked.num_warmup_batches):
        step()
    if leader:
        print("Done warm up\nStep\tImg/sec\ttotal_loss", flush=True)
    world.Barrier()
    begun = time.perf_counter()
    speeds: list[float] = []
    for number in range(1, asked.num_batches + 1):
        before = time.perf_counter()
        loss = step()
        speeds.append(asked.batch_size / (time.perf_counter() - before))
        if number == 1 or number % asked.display_every == 0:
            print(line(number, speeds, loss), flush=True)
    world.Barrier()
    seconds = time.perf_counter() - begun

    if any(other != weights for other in world.allgather(weights)):
        print("The ranks ended with different weights", file=sys.stderr, flush=True)
        return 1
    if leader:
        total = world.size * asked.batch_size * asked.num_batches / seconds
        rule = "-" * 64
        print(f"{rule}\ntotal images/sec: {total:.2f}\n{rule}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
