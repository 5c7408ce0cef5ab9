"""A worker whose epochs end with a step of their own: rank 0 dies where it is
told the second.

Prints: final STEPS-AT-ENDS COMMITTED ENDS, where ENDS are the ends that it was told.
"""
import array
import os
import signal
import time

import elasticrun

counts = array.array("d", [0.0, 0.0])  # of samples, and of committed ends
sums = array.array("d", [0.0])
job = elasticrun.Job().state("counts", counts).gradients("sums", sums)
entered = job.enter()
print("entered", entered, flush=True)
told = []
for step in job.steps(samples=240, epochs=4, batch=6, epoch_steps=1):
    if step.epochs_done:
        told.append(str(step.epochs_done))
        if told == ["1", "2"] and job.size > 1:
            try:
                job.barrier()  # the others have committed the last step, too
            except elasticrun.WorldChanged:
                pass  # reduce says so
            if job.rank == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        if job.reduce():
            counts[1] += 1
            job.commit()
        continue
    time.sleep(0.005)
    if step.last_piece and job.reduce():
        counts[0] += step.global_batch
        job.commit()
print("final", counts[0], counts[1], " ".join(told), flush=True)
