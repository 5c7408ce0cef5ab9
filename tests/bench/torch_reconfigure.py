"""What torch_trainer.py does, with nothing but PyTorch 2.15's process group that can be formed anew
(dist._reconfigure): four processes, and a parent that has their store and says who is there.

    torch_reconfigure.py LOG_DIR STEP_US GRADIENT_KB
"""
import json
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist

SIZE = 4
NUMBERS = 1_000_000  # of processes, one after the other
TIMEOUT = timedelta(seconds=5)  # after which a process notices that another is gone, if not before


def worker(number: int, port: int) -> None:
    log_dir, step_us, gradient_kb = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", port, wait_for_workers=False)
    dist.init_process_group("gloo", store=dist.PrefixStore("base", store), rank=number,
                            world_size=NUMBERS, enable_reconfigure=True, timeout=TIMEOUT)
    gradients = torch.ones(gradient_kb * 1000 // 4 + 1)
    log = os.open(os.path.join(log_dir, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    generation = made = 0

    def newest() -> int:
        return int(store.get("generation"))

    def enter(wanted: int) -> int:
        members = json.loads(store.get(f"members {wanted}"))
        store.set(f"handle {wanted} {number}", dist._get_reconfigure_handle())
        handles = [store.get(f"handle {wanted} {one}").decode() for one in members]
        dist._reconfigure(uuid=wanted, handles=handles, timeout=TIMEOUT).wait()
        store.set(f"in {wanted} {number}", "1")
        return wanted

    store.set(f"up {number}", "1")
    while number not in json.loads(store.get(f"members {newest()}")):
        time.sleep(0.01)
    generation = enter(newest())
    while True:
        begun = time.monotonic_ns()
        time.sleep(step_us / 1e6)
        # All change after the same step: the first one's word rides on the reduction.
        gradients[-1] = float(dist.get_rank() == 0 and newest() > generation)
        try:
            dist.all_reduce(gradients)
        except RuntimeError:
            while newest() == generation:
                time.sleep(0.001)
            generation = enter(newest())
            continue
        made += 1
        os.write(log, f"{time.monotonic_ns()} {begun} {generation} {dist.get_rank()} "
                      f"{dist.get_world_size()} {made}\n".encode())
        if gradients[-1] > 0:
            generation = enter(newest())


def job() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    running: dict[int, subprocess.Popen[bytes]] = {}
    started = generation = 0
    members: list[int] = []

    def start() -> None:
        nonlocal started
        running[started] = subprocess.Popen([sys.executable, *sys.argv],
                                            env=os.environ | {"NUMBER": f"{started} {store.port}"})
        started += 1

    def announce(now: list[int]) -> list[int]:
        nonlocal generation
        generation += 1
        store.set(f"members {generation}", json.dumps(now))
        store.set("generation", str(generation))
        return now
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        for _ in range(SIZE):
            start()
        while True:
            for number in [one for one, process in running.items() if process.poll() is not None]:
                del running[number]
                members = announce([one for one in members if one != number])
                start()
            up = [number for number in running if store.check([f"up {number}"])]
            settled = all(store.check([f"in {generation} {number}"]) for number in members)
            if len(up) == SIZE and up != members and settled:
                members = announce(up)
            time.sleep(0.001)
    finally:
        for process in running.values():
            process.kill()


if __name__ == "__main__":
    worker(*map(int, os.environ["NUMBER"].split())) if "NUMBER" in os.environ else job()
