"""What torch_trainer.py does, with torchft: four replicas and their lighthouse. A replica that ends is
started again, as its documentation asks a scheduler to do.

    torch_ft.py LOG_DIR STEP_US GRADIENT_KB [JOIN_TIMEOUT_MS]
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from datetime import timedelta

REPLICAS = 4
JOIN_TIMEOUT_MS = int((sys.argv[4:] or ["1000"])[0])
HEARTBEAT_TIMEOUT_MS = min(1000, 3 * JOIN_TIMEOUT_MS)  # a heartbeat is sent each 100 ms


def replica() -> None:
    import torch
    import torch.distributed as dist
    from torchft import Manager, ProcessGroupGloo
    log_dir, step_us, gradient_kb = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(1)
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
    gradients = torch.ones(gradient_kb * 250)
    weights = torch.zeros(gradient_kb * 250)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=timedelta(seconds=5)), min_replica_size=1,
        load_state_dict=lambda state: weights.copy_(state["w"]), state_dict=lambda: {"w": weights},
        replica_id=f"{os.environ['REPLICA']}_", store_addr="127.0.0.1", store_port=store.port,
        rank=0, world_size=1, timeout=timedelta(seconds=10), quorum_timeout=timedelta(seconds=10),
        use_async_quorum=True)
    log = os.open(os.path.join(log_dir, str(os.getpid())), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    number = 0
    while True:
        begun = time.monotonic_ns()
        manager.start_quorum()
        time.sleep(step_us / 1e6)
        gradients.fill_(1)
        manager.allreduce(gradients).wait()
        if not manager.should_commit():
            continue
        weights.add_(gradients, alpha=0.01)
        rank = manager.participating_rank()
        if rank is not None:  # else it has received the state, and its step did not count
            number += 1
            os.write(log, f"{time.monotonic_ns()} {begun} {manager._quorum_id} {rank} "
                          f"{manager.num_participants()} {number}\n".encode())


def job() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    program = shutil.which("torchft_lighthouse")
    assert program, "torchft_lighthouse is not on PATH"
    lighthouse = subprocess.Popen(
        [program, "--min_replicas", "1", "--quorum_tick_ms", "100", "--join_timeout_ms", str(JOIN_TIMEOUT_MS),
         "--heartbeat_timeout_ms", str(HEARTBEAT_TIMEOUT_MS), "--bind", address])
    environment = os.environ | {"TORCHFT_LIGHTHOUSE": f"http://{address}", "OMP_NUM_THREADS": "1"}

    def start(number: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, *sys.argv],
                                env=environment | {"REPLICA": f"r{number}"})
    running = [start(number) for number in range(REPLICAS)]
    started = REPLICAS
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        while True:
            os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            for place, one in enumerate(running):
                if one.poll() is not None:
                    running[place] = start(started)
                    started += 1
    finally:
        for one in [*running, lighthouse]:
            one.kill()


if __name__ == "__main__":
    replica() if "REPLICA" in os.environ else job()
