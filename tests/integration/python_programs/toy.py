"""A worker in Python for the tests: toy.py MODE, with MODE train, steps or own. Learns eight numbers
with momentum, which the first step makes, and carries a count of its steps as an object.

Prints: final NUMBER... COUNT
"""
import array
import math
import os
import pickle
import sys
import threading
import time
from typing import Optional

import elasticrun

BATCH, STEPS, WIDTH = 24, 600, 8
SLEEP = float(os.environ.get("TOY_SLEEP", "0"))  # seconds in each step


class Model:
    def __init__(self) -> None:
        self.weights = array.array("d", [0.0] * WIDTH)
        self.gradients = array.array("d", [0.0] * WIDTH)
        self.momentum: Optional[array.array] = None
        self.applied = 0

    def add(self, samples: list[int], count: int) -> None:
        time.sleep(SLEEP)
        for i in range(WIDTH):
            away = sum(self.weights[i] - math.sin(1.7 * sample + i) for sample in samples)
            self.gradients[i] = away / count

    def make_momentum(self) -> None:
        if self.momentum is None:
            self.momentum = array.array("d", [0.0] * WIDTH)

    def descend(self) -> None:
        self.make_momentum()
        self.applied += 1
        for i in range(WIDTH):
            self.momentum[i] = 0.5 * self.momentum[i] + self.gradients[i]
            self.weights[i] -= 0.1 * self.momentum[i]

    # ------------------------------------------------------------ as a state source

    def listed(self, listing: elasticrun.Listing) -> None:
        if self.momentum is not None:
            listing.array("momentum", self.momentum)
        listing.objects(pickle.dumps({"applied": self.applied}))

    def make_room(self, wanted: list[tuple[str, int]]) -> None:
        if wanted != [("momentum", 8 * WIDTH)]:
            raise ValueError(f"cannot make room for {wanted}")
        self.make_momentum()

    def take_objects(self, data: bytes) -> None:
        self.applied = pickle.loads(data)["applied"]


def check(model: Model, step: int) -> None:
    if model.applied != step:
        raise ValueError(f"step {step} begins after {model.applied}")


def train(job: elasticrun.Job, model: Model, as_loop: bool) -> None:
    def compute(step: elasticrun.Step) -> None:
        check(model, step.number)
        samples = step.samples
        model.add(samples, len(samples))
        step.sum("samples", len(samples))
        reporter = threading.Thread(target=step.ready, args=("gradients",))
        reporter.start()
        reporter.join()

    def apply(step: elasticrun.Step) -> None:
        if step.total("samples") != step.global_batch or not step.is_set("gradients"):
            raise ValueError("the figures are not those of the step")
        model.descend()

    options = {"samples": BATCH * STEPS // 2, "epochs": 2, "batch": BATCH, "bucket_bytes": 1}
    if not as_loop:
        return job.train(compute, apply, **options)
    for step in job.steps(**options):
        if step.epochs_done:
            continue
        if step.samples:
            compute(step)
        if step.last_piece and job.reduce():
            apply(step)
            job.commit()
    return None


def own(job: elasticrun.Job, model: Model) -> None:
    job.start()
    while job.committed < STEPS:
        step = job.committed
        check(model, step)
        try:
            mine = range(step * BATCH + job.rank, (step + 1) * BATCH, job.size)
            model.add(list(mine), BATCH)
            job.all_reduce_start(model.gradients)
            job.all_reduce_wait()
            model.descend()
            job.samples(len(mine))
            job.commit()
        except elasticrun.WorldChanged:
            continue
    job.finish()


def main() -> None:
    model = Model()
    with elasticrun.Job() as job:
        job.state("weights", model.weights).gradients("gradients", model.gradients)
        job.state_source(model.listed, model.make_room, model.take_objects)
        if sys.argv[1] == "own":
            own(job, model)
        else:
            train(job, model, sys.argv[1] == "steps")
    print("final", *model.weights, model.applied, flush=True)


main()
