#!/usr/bin/env python3
"""A training that ends in every way, at every place: ways_to_end.py FORM PLACE ACT

FORM: calls (two calls of train), steps (a loop over job.steps), own (a loop with start and commit),
torch (a loop over job.loader).
PLACE: opened (before training), step (in step 10), left (after leave() in step 10), between (after
the first call of train), end (after the training).
ACT: none, zero (exits with 0), three (exits with 3), raise, crash (SIGSEGV), kill (SIGKILL), slow
(needs longer than --grace 1s). `all:ACT`: each rank acts, and not only the first one.

The first rank writes the file `model` when all is over."""
import os
import signal
import sys
import time
from array import array

import elasticrun

FORM, PLACE, ACT = sys.argv[1:4]
SAMPLES, BATCH = 160, 4
weights, gradients = array("d", [0]), array("d", [0])


def act(place: str, rank: int) -> None:
    alone = not ACT.startswith("all:")
    if place != PLACE or (alone and rank != 0) or (alone and place == "between" and once()):
        return
    deed = ACT.removeprefix("all:")
    if place == "step":
        await_all(rank)
    if deed in ("zero", "three"):
        os._exit(3 if deed == "three" else 0)
    if deed == "raise":
        raise RuntimeError("of the program")
    if deed in ("crash", "kill"):
        os.kill(os.getpid(), signal.SIGSEGV if deed == "crash" else signal.SIGKILL)
    if deed == "slow":
        time.sleep(2.5)


def await_all(rank: int) -> None:
    """Until each rank is here, so that none learns of the end of another one before its own."""
    with open(f"at-{rank}", "w", encoding="ascii"):
        pass
    while not all(os.path.exists(f"at-{other}") for other in range(job.size)):
        time.sleep(0.001)


def once() -> bool:
    """True: it has happened before."""
    try:
        with open("acted", "x", encoding="ascii") as file:
            file.write(str(os.getpid()))
        return False
    except FileExistsError:
        return True


def evaluate() -> None:
    """Until the worker that ends between two calls of train is dead."""
    while PLACE == "between" and not ACT.startswith("all:"):
        if os.path.exists("acted"):
            with open("acted", encoding="ascii") as file:
                pid = file.read()
            if pid and not os.path.exists("/proc/" + pid):
                return
        time.sleep(0.01)


def stops(job: elasticrun.Job, number: int) -> bool:
    """Step 10: acts there, or leaves."""
    if number == 10:
        act("step", job.rank)
    if PLACE == "left" and number >= 10:
        job.leave()
    return PLACE == "left" and number >= 10


def compute(step: elasticrun.Step) -> None:
    gradients[0] = 1
    if step.number == 10:
        act("step", job.rank)


def applied(step: elasticrun.Step) -> None:
    weights[0] += gradients[0]


def calls() -> None:
    job.train(compute, applied, samples=SAMPLES, batch=BATCH)
    act("between", job.rank)
    evaluate()
    job.train(compute, applied, samples=SAMPLES, batch=BATCH)


def steps() -> None:
    for step in job.steps(samples=SAMPLES, batch=BATCH):
        if step.epochs_done:
            continue
        if stops(job, step.number):
            return
        gradients[0] = 1
        if step.last_piece and job.reduce():
            weights[0] += gradients[0]
            job.commit()


def own() -> None:
    job.start()
    while job.committed < 20:
        if stops(job, job.committed):
            return
        try:
            gradients[0] = 1
            job.all_reduce(gradients)
            job.samples(BATCH)
            weights[0] += gradients[0]
            job.commit()
        except elasticrun.WorldChanged:
            continue
    job.finish()


def torch_loop() -> None:
    data = torch.utils.data.TensorDataset(torch.ones(SAMPLES, 1))
    for _ in job.epochs(2):
        for (x,) in job.loader(data, batch_size=BATCH):
            if stops(job, job.step):
                return
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if FORM == "torch":
    import torch
    import elasticrun.torch
    torch.set_num_threads(1)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    job = elasticrun.torch.Job(model, optimizer)
else:
    job = elasticrun.Job()
    job.state("weights", weights)
if FORM in ("calls", "steps"):
    job.gradients("gradients", gradients)
act("opened", int(os.environ["RANK"]))
{"calls": calls, "steps": steps, "own": own, "torch": torch_loop}[FORM]()
first = job.rank == 0
act("left", job.rank)
act("end", job.rank)
if first:
    with open("model", "w", encoding="ascii") as file:
        file.write("whole")
if FORM != "torch":
    job.close()
