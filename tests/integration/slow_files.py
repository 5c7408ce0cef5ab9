"""A folder whose file system is slow, or does not answer: sshfs and an SFTP server on this machine, with
a relay between them that takes its time."""
import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from types import TracebackType

from job import until

SERVER = "/usr/lib/openssh/sftp-server"


def missing() -> str:
    """Why there can be no such folder here; empty: nothing is missing."""
    if os.geteuid() != 0:
        return "needs root"
    if not shutil.which("sshfs") or not os.path.exists(SERVER):
        return "needs sshfs and openssh-server"
    return "" if os.path.exists("/dev/fuse") else "needs /dev/fuse"


class SlowFolder:
    """Mounts at `path`, an empty folder; what is written takes its time from then on."""

    def __init__(self, path: str, bytes_per_s: float) -> None:
        self.path = path
        self.rate = bytes_per_s
        self.answers = threading.Event()
        self.answers.set()
        self.behind = tempfile.mkdtemp(prefix="er-slow-")  # where the files really are
        server, self.server_end = socket.socketpair()
        client, self.client_end = socket.socketpair()
        self.processes = [
            subprocess.Popen([SERVER], stdin=server, stdout=server),
            # Without its caches, so that what one process writes is there for others at once.
            subprocess.Popen(["sshfs", f":{self.behind}", path, "-f", "-o", "passive",
                              "-o", "cache=no,attr_timeout=0,entry_timeout=0"],
                             stdin=client, stdout=client)]
        server.close()
        client.close()
        self.relays = [threading.Thread(target=self.relay, args=ends, daemon=True)
                       for ends in ((self.server_end, self.client_end, False),
                                    (self.client_end, self.server_end, True))]
        for thread in self.relays:
            thread.start()
        until("the mount", lambda: os.path.ismount(path), 10)

    def relay(self, source: socket.socket, target: socket.socket, slow: bool) -> None:
        try:
            while data := source.recv(1 << 16):
                self.answers.wait()
                target.sendall(data)
                if slow:
                    time.sleep(len(data) / self.rate)  # this is what makes it slow
        except OSError:
            pass

    @contextlib.contextmanager
    def hung(self) -> Iterator[None]:
        """Nothing is answered meanwhile: who asks cannot even be killed."""
        self.answers.clear()
        try:
            yield
        finally:
            self.answers.set()

    def __enter__(self) -> "SlowFolder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        subprocess.run(["umount", "--lazy", self.path], check=False)
        for process in self.processes:
            process.kill()
            process.wait()
        for end in (self.server_end, self.client_end):
            end.shutdown(socket.SHUT_RDWR)
        for thread in self.relays:
            thread.join(5)
        for end in (self.server_end, self.client_end):
            end.close()
        shutil.rmtree(self.behind, ignore_errors=True)
