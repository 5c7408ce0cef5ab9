#!/usr/bin/env python3
"""A worker without the library, which sends messages of the protocol itself: lying_worker.py LIE.

The one in slot 0 of its host sends false messages. The others join, and send nothing more.
"""
import json
import os
import socket
import struct
import sys
import time

WORKER = int(os.environ["ELASTICRUN_WORKER"])
TRAIN = {"call": 1, "samples": 100, "epochs": 3, "batch": 4, "base_batch": 4, "state_bytes": 32,
         "state_layout": 5}
BIG = 2**63 - 1


class Agent:
    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["ELASTICRUN_SOCKET"])
        self.frame(0, {"Hello": {"protocol": 6, "version": "0.1.0", "role": "worker",
                                 "job": os.environ["ELASTICRUN_JOB_ID"], "worker": WORKER,
                                 "pid": os.getpid()}})
        self.send("Join", protocol=6, version="0.1.0")

    def frame(self, worker: int, message: dict[str, object]) -> None:
        text = json.dumps(message).encode()
        self.socket.sendall(struct.pack(">II", len(text), worker) + text)

    def send(self, name: str, **members: object) -> None:
        self.frame(WORKER, {name: members})


def lie(agent: Agent, what: str) -> None:
    if what == "forged":
        agent.send("Leave", reason="\r\nelasticrun: forged \x1b[31m \u009b2J" + "x" * 1_000_000)
    if what == "flood":  # more than an agent keeps for its controller
        for _ in range(3000):
            agent.send("Publish", generation=0, value="a" * 30000)
    if what == "steps":
        agent.send("Done", call=1, step=BIG)
    print("lied", flush=True)


AGENT = Agent()
AGENT.send("Ready", train=TRAIN)
if os.environ["LOCAL_RANK"] == "0":
    lie(AGENT, sys.argv[1])
else:
    print("honest", flush=True)
time.sleep(1000)
