"""The few system calls for namespaces that Python 3.11 does not have.

Most functions are system calls by their own names; all raise OSError. With unshare(1), mount(8)
and their like a host would need a dozen processes before its own first one, and there are 64 hosts.
"""
import ctypes
import os

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_NOEXEC, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 8, 32, 4096, 16384, 1 << 18
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}[os.uname().machine]

SSHD = "/usr/sbin/sshd"
UP = "/run/bed.pid"  # exists while the host is up; sshd writes it as its PidFile

LIBC = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def unshare(flags: int) -> None:
    check(LIBC.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    check(LIBC.setns(fd, kind), "setns")


def die_with_parent(signal: int) -> None:
    """The parent is the thread that started this process, not only its process."""
    check(LIBC.prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0), "prctl")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    words = [word.encode() for word in (source, target, kind)]
    check(LIBC.mount(*words, ctypes.c_ulong(flags), data.encode()),
          f"mount {kind or source} at {target}")


def unmount(target: str) -> None:
    """Processes that are still inside may stay there."""
    check(LIBC.umount2(target.encode(), MNT_DETACH), f"umount {target}")


def sethostname(name: str) -> None:
    check(LIBC.sethostname(name.encode(), len(name.encode())), "sethostname")


def pivot_root(new: str, old: str) -> None:
    check(LIBC.syscall(SYS_PIVOT_ROOT, new.encode(), old.encode()), "pivot_root")
