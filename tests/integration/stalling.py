"""A folder on a file system that stalls on command, like one whose server is gone.

It is a FUSE file system of this process, in the kernel's own protocol (linux/fuse.h), because that
needs no package. While it stalls, requests are not taken from the kernel, so a process that touches
a file hangs in the kernel and can be killed, as on NFS. Nothing is cached: each access to a file
asks here.

The serving process must not touch the folder itself; it finds the files in `files`.
"""
import ctypes
import errno
import functools
import os
import select
import stat
import struct
import tempfile
import threading
import time
from types import TracebackType
from typing import Any, Self

ROOT = 1
LOOKUP, FORGET, GETATTR, SETATTR, OPEN, READ, WRITE = 1, 2, 3, 4, 14, 15, 16
UNLINK, RENAME, RELEASE, INIT, CREATE, INTERRUPT, DESTROY, BATCH_FORGET = (
    10, 12, 18, 26, 35, 36, 38, 42)
NO_ANSWER = (FORGET, BATCH_FORGET, INTERRUPT)
DIRECT_IO_AND_NO_FLUSH = 1 | 1 << 5  # of open_flags: each access, and no close, asks the server
DETACH = 2  # of umount2
NEW_MOUNTS, PRIVATE, RECURSIVE = 0x20000, 1 << 18, 1 << 14  # of unshare and mount
libc = ctypes.CDLL(None, use_errno=True)


def call(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), what)


@functools.cache
def keep_mounts() -> None:
    """Private mounts for this process and its children; they end with them in any case."""
    call(libc.unshare(NEW_MOUNTS), "unshare")
    call(libc.mount(b"none", b"/", None, PRIVATE | RECURSIVE, None), "mount")


class StallingFolder:
    """`path` is where it is mounted, `files` are its files."""

    def __init__(self) -> None:
        keep_mounts()
        self.path = tempfile.mkdtemp(prefix="er-stall-")
        self.files: dict[str, bytearray] = {}
        self.changed: dict[str, int] = {}  # when a file was changed, in nanoseconds
        self.numbers: dict[int, str] = {}  # inode number -> name
        self.wake_end, self.wake = os.pipe()
        self.may_serve, self.stands_still = threading.Event(), threading.Event()
        self.is_mounted = threading.Event()
        self.may_serve.set()
        self.over = False
        self.asked = time.monotonic()  # time of the last request
        self.device = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self.device},rootmode=40000,user_id=0,group_id=0"
        call(libc.mount(b"stalling", self.path.encode(), b"fuse", 0, options.encode()), "mount")
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        self.is_mounted.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        call(libc.umount2(self.path.encode(), DETACH), "umount2")
        self.over = True
        self.go_on()
        os.write(self.wake, b"x")
        self.thread.join()
        for descriptor in (self.device, self.wake, self.wake_end):
            os.close(descriptor)
        os.rmdir(self.path)

    def put(self, name: str, text: str) -> None:
        self.files[name] = bytearray(text.encode())
        self.changed[name] = time.time_ns()

    def text(self, name: str) -> str:
        return self.files.get(name, bytearray()).decode()

    def stall(self) -> None:
        """Returns when no request is under way any more."""
        if not self.may_serve.is_set():
            return
        self.stands_still.clear()
        self.may_serve.clear()
        os.write(self.wake, b"x")
        self.stands_still.wait()

    def go_on(self) -> None:
        self.asked = time.monotonic()
        self.may_serve.set()

    def is_idle(self, seconds: float) -> bool:
        """Whether no request came in that time."""
        return time.monotonic() > self.asked + seconds

    def waiting(self) -> bool:
        """Whether a process hangs in a request."""
        return bool(select.select([self.device], [], [], 0)[0])

    # ------------------------------------------------------------ the protocol

    def serve(self) -> None:
        while not self.over:
            if not self.may_serve.is_set():
                self.stands_still.set()
                self.may_serve.wait()
            ready = select.select([self.device, self.wake_end], [], [])[0]
            if self.wake_end in ready:
                os.read(self.wake_end, 1)
                continue
            try:
                request = os.read(self.device, 1 << 20)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.EINTR):  # the request was withdrawn
                    continue
                return  # unmounted
            self.answer(request)

    def answer(self, request: bytes) -> None:
        self.asked = time.monotonic()
        _, operation, unique, node = struct.unpack_from("<IIQQ", request)
        if operation in NO_ANSWER:
            return
        try:
            body = self.body(operation, node, request[40:])
            code = 0
        except OSError as error:
            body, code = b"", -(error.errno or errno.EIO)
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(body), code, unique) + body)
        except FileNotFoundError:
            pass  # the process that asked was killed

    def body(self, operation: int, node: int, given: bytes) -> bytes:
        if operation == INIT:
            self.is_mounted.set()
            return struct.pack("<IIIIHHIIHHI28x", 7, 31, 0, 0, 16, 12, 1 << 17, 1, 0, 0, 0)
        if operation == LOOKUP:
            return self.entry(self.known(given))
        if operation in (GETATTR, SETATTR):
            return struct.pack("<QII", 0, 0, 0) + self.attributes(node)
        if operation == OPEN:
            return self.opened()
        if operation == CREATE:
            name = given[16:].split(b"\0")[0].decode()
            self.put(name, "")
            return self.entry(name) + self.opened()
        if operation == UNLINK:
            del self.files[self.known(given)]
            return b""
        if operation == RENAME:
            old, new = (name.decode() for name in given[8:].split(b"\0")[:2])
            self.files[new] = self.files.pop(old)
            self.numbers[self.number(old)] = new
            return b""
        name = self.numbers.get(node, "")
        if operation == READ:
            offset, size = struct.unpack_from("<8xQI", given)
            return bytes(self.files[name][offset:offset + size])
        if operation == WRITE:
            offset, size = struct.unpack_from("<8xQI", given)
            self.files[name][offset:offset + size] = given[40:40 + size]
            self.changed[name] = time.time_ns()
            return struct.pack("<II", size, 0)
        if operation in (RELEASE, DESTROY):
            return b""
        raise OSError(errno.ENOSYS, "")

    def known(self, given: bytes) -> str:
        name = given.split(b"\0")[0].decode()
        if name not in self.files:
            raise OSError(errno.ENOENT, name)
        return name

    def number(self, name: str) -> int:
        for number, other in self.numbers.items():
            if other == name:
                return number
        self.numbers[ROOT + 1 + len(self.numbers)] = name
        return ROOT + len(self.numbers)

    def opened(self) -> bytes:
        return struct.pack("<QII", 0, DIRECT_IO_AND_NO_FLUSH, 0)

    def entry(self, name: str) -> bytes:
        number = self.number(name)
        return struct.pack("<QQQQII", number, 0, 0, 0, 0, 0) + self.attributes(number)

    def attributes(self, node: int) -> bytes:
        name = self.numbers.get(node, "")
        mode: Any = stat.S_IFREG | 0o644 if name else stat.S_IFDIR | 0o755
        second, nanosecond = divmod(self.changed.get(name, 0), 10 ** 9)
        return struct.pack("<QQQQQQIIIIIIIIII", node, len(self.files.get(name, "")), 0,
                           second, second, second, nanosecond, nanosecond, nanosecond,
                           mode, 1, 0, 0, 0, 4096, 0)
