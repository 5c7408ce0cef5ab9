#!/usr/bin/env python3
"""Opens COUNT connections of strangers to the ports of a job, as fast as they are accepted.

    impostors.py COUNT IDENTITY PORT [PORT...]

One fifth each: silence; garbage; TLS without a key; TLS with the name of a key (IDENTITY) and
another secret; half of that message. The first messages are recorded from openssl(1) and sent again
and again, so that an impostor costs this program next to nothing, and the job all it can.
"""
import collections
import os
import select
import socket
import subprocess
import sys
import time

OPEN_MAX = 900  # connections that are kept open at a time; then the oldest is closed
PATIENCE = 60  # seconds for all


def recorded(*options: str) -> bytes:
    """The first message that openssl's client sends with these options."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = subprocess.Popen(
            ["openssl", "s_client", "-connect", f"127.0.0.1:{server.getsockname()[1]}", "-tls1_3",
             "-ciphersuites", "TLS_AES_128_GCM_SHA256", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        server.settimeout(10)
        with client, server.accept()[0] as guest:
            hello = guest.recv(1 << 14)
            client.kill()
    return hello


def call(port: int) -> socket.socket:
    caller = socket.socket()
    caller.setblocking(False)
    caller.connect_ex(("127.0.0.1", port))
    return caller


def flood(count: int, greetings: list[bytes], ports: list[int]) -> int:
    """Opens the connections, and returns how many were accepted."""
    kept: collections.deque[socket.socket] = collections.deque()
    connected, deadline = 0, time.monotonic() + PATIENCE
    for number in range(count):
        caller = call(ports[number % len(ports)])
        # While the listener's queue is full a connection only waits, which is no load for the job.
        left = deadline - time.monotonic()
        if left > 0 and select.select([], [caller], [], left)[1]:
            try:
                caller.send(greetings[number % len(greetings)])
                connected += 1
            except OSError:
                pass  # rejected already, or the port is closed
        kept.append(caller)
        if len(kept) > OPEN_MAX:
            kept.popleft().close()
    return connected


def main() -> None:
    count, identity, ports = int(sys.argv[1]), sys.argv[2], [int(port) for port in sys.argv[3:]]
    wrong_key = recorded("-psk_identity", identity, "-psk", "5a" * 32)
    greetings = [b"", os.urandom(300), recorded(), wrong_key, wrong_key[:len(wrong_key) // 2]]
    begin = time.monotonic_ns()
    connected = flood(count, greetings, ports)
    print(begin, time.monotonic_ns(), connected)


if __name__ == "__main__":
    main()
