"""Elastic training in Python, in twenty lines: finds the line through noisy points.

    python3 line.py                                    alone
    elasticrun --np 1:4 --max-batch 64 line.py         on workers that come and go
"""
import array
import random

import elasticrun

noise = random.Random(1)
points = [(x := i / 1000, 2 * x + 1 + noise.gauss(0, 0.1)) for i in range(4000)]
line, gradient = array.array("d", [0, 0]), array.array("d", [0, 0])
job = elasticrun.Job().state("line", line).gradients("gradient", gradient)


def compute(step):
    """Leaves the mean gradient over the samples of this worker; changes no state."""
    mine = [points[sample] for sample in step.samples]
    away = [line[0] * x + line[1] - y for x, y in mine]
    gradient[0] = sum(d * x for d, (x, _) in zip(away, mine)) / len(mine)
    gradient[1] = sum(away) / len(mine)


def apply(step):
    """Finds the mean over the global batch, the same on every worker."""
    for i in range(2):
        line[i] -= 0.02 * step.lr_factor * gradient[i]


def after_epoch(done):
    if job.rank == 0:
        print(f"epoch {done}: y = {line[0]:.2f} x + {line[1]:.2f}, {job.size} workers", flush=True)


job.on_epoch(after_epoch)
job.train(compute, apply, samples=len(points), epochs=5, batch=16, base_batch=16)
