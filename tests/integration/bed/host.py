"""The first process of a host in the test bed: it builds the host around itself, then becomes its
sshd.

    host.py FOLDER NETWORK     FOLDER/host.json describes the host (bed.Spec)

It lives from power on to power off. There are two processes: the outer one belongs to the machine
and dies with the test (and the inner one with it); the inner one is process 1 of the host, so that
the kernel kills all of the host when it ends. Everything that the host has of its own (its mounts,
name, /run) ends the same way; FOLDER holds what a disk keeps over a loss of power.

A host without sshd has no listener (`refuses`), or one that never greets (`silent`).
"""
import errno
import json
import os
import shutil
import signal
import sys

import kernel
from kernel import SSHD, UP

# What a private root shows: Debian's programs and settings, but not /home, /opt, /tmp, /usr/local
# and other folders of a machine in use.
SYSTEM = ["bin", "etc", "lib", "lib32", "lib64", "libx32", "sbin", "usr", "var"]

Spec = dict[str, object]  # as bed.Spec has it


def bind(source: str, target: str, flags: int = 0) -> None:
    kernel.mount(source, target, flags=kernel.MS_BIND | kernel.MS_REC)
    if flags:  # the kernel takes flags only in a second call
        kernel.mount("none", target, flags=kernel.MS_BIND | kernel.MS_REMOUNT | flags)


def lay(disk: str, condition: str, target: str, within: list[str]) -> None:
    """Puts a folder of the host's own disk, in some condition, over one of the system's; it has
    the folders `within`, for what is mounted there."""
    if condition != "full":
        for name in within:
            os.makedirs(os.path.join(disk, name), exist_ok=True)
        flags = {"own": 0, "noexec": kernel.MS_NOEXEC, "readonly": kernel.MS_RDONLY}
        bind(disk, target, flags[condition])
        return
    kept = {}  # read before the mount: the target may be above the disk
    for name in os.listdir(disk):
        with open(os.path.join(disk, name), "rb") as old:
            kept[name] = old.read()
    kernel.mount("tmpfs", target, "tmpfs", 0,
                 f"size=16k,nr_inodes=16,mode={os.stat(disk).st_mode & 0o7777:o}")
    for name, content in kept.items():
        with open(os.path.join(target, name), "wb") as new:
            new.write(content)
    for name in within:
        os.makedirs(os.path.join(target, name))
    with open(os.path.join(target, "filler"), "wb", buffering=0) as filler:
        try:
            while filler.write(b"x" * 4096):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def make_root(folder: str, programs: list[str]) -> str:
    """Makes a root of its own, without our programs; returns where it is until it is entered."""
    root = os.path.join(folder, "root")
    kernel.mount("tmpfs", root, "tmpfs", 0, "size=16m,mode=755")
    for name in SYSTEM:
        path = "/" + name
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
        elif os.path.isdir(path):
            os.mkdir(root + path)
            bind(path, root + path, kernel.MS_RDONLY)
    for name in ("dev", "home", "mnt", "opt", "proc", "root", "run", "sys", "tmp"):
        os.mkdir(os.path.join(root, name))
    for name in ("usr/local", "var/tmp"):
        kernel.mount("tmpfs", os.path.join(root, name), "tmpfs", 0, "size=1m,mode=1777")
    bind("/dev", root + "/dev")
    for path in programs:
        if os.path.isdir(root + path):
            kernel.mount("tmpfs", root + path, "tmpfs", 0, "size=1m,mode=755")
    return root


def bring_suppressions(root: str) -> None:
    """Copies the suppressions that programs with the thread sanitizer read."""
    if os.environ.get("ELASTICRUN_SANITIZE") != "thread":
        return
    for option in os.environ.get("TSAN_OPTIONS", "").split(":"):
        path = option.removeprefix("suppressions=")
        if path != option and not os.path.exists(root + path):
            os.makedirs(root + os.path.dirname(path), exist_ok=True)
            shutil.copy(path, root + path)


def below(top: str, paths: list[str]) -> list[str]:
    """Those of the paths that are below `top`, seen from there."""
    return [os.path.relpath(path, top) for path in paths if path.startswith(top + "/")]


def furnish(folder: str, root: str, spec: Spec) -> None:
    """Mounts what is the host's own; `root` is empty when it shares the machine's root."""
    # What it shares with the machine, wherever that is: below /tmp, /root or /run, too.
    shared = [spec["folder"]] if spec["folder"] else []
    shared += [] if root else spec["programs"]
    opened = {path: os.open(path, os.O_PATH) for path in shared}
    kernel.mount("proc", root + "/proc", "proc")
    kernel.mount("tmpfs", root + "/dev/shm", "tmpfs", 0, "mode=1777")
    # A new /sys shows the network of the process that mounts it, and no control groups.
    groups = os.path.join(folder, "groups")
    bind("/sys/fs/cgroup", groups)
    kernel.mount("sysfs", root + "/sys", "sysfs")
    bind(groups, root + "/sys/fs/cgroup")
    kernel.unmount(groups)
    kernel.mount("tmpfs", root + "/run", "tmpfs", 0, "size=4m,mode=755")
    os.mkdir(root + "/run/sshd")
    bind(os.path.join(folder, "ssh"), root + "/etc/ssh")
    for name in ("hosts", "hostname", "resolv.conf"):
        if os.path.exists(f"{root}/etc/{name}"):
            bind(os.path.join(folder, name), f"{root}/etc/{name}")
    home, temporary = os.path.join(folder, "home"), os.path.join(folder, "tmp")
    lay(home, spec["home"], root + "/root", below("/root", shared))
    if spec["tmp"]:  # last: the bed's folder may be in /tmp
        lay(temporary, spec["tmp"], root + "/tmp", below("/tmp", shared))
    for path, fd in opened.items():
        os.makedirs(root + path, exist_ok=True)
        bind(f"/proc/self/fd/{fd}", root + path)
        os.close(fd)


def enter(root: str) -> None:
    if root:
        os.chdir(root)
        kernel.pivot_root(".", ".")
        kernel.unmount(".")
    os.chdir("/")


def serve(spec: Spec) -> None:
    """What process 1 does for the rest of its life; UP exists as soon as the host is ready."""
    if spec["sshd"] == "answers":
        os.execv(SSHD, [SSHD, "-D", "-e", "-f", "/etc/ssh/sshd_config"])
    if spec["sshd"] == "silent":  # the kernel accepts connections, and no process answers
        import socket  # takes longer to load than a host to boot
        _server = socket.create_server(("", 22), family=socket.AF_INET6, dualstack_ipv6=True,
                                       backlog=1000)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # whoever becomes its child leaves no zombie
    open(UP, "x", encoding="ascii").close()
    while True:
        signal.pause()


def inner(folder: str, spec: Spec) -> None:
    kernel.die_with_parent(signal.SIGKILL)
    os.setsid()
    for group in spec["groups"]:
        with open(os.path.join(group, "cgroup.procs"), "w", encoding="ascii") as file:
            file.write("0")  # the writer itself
    kernel.sethostname(spec["name"])
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    root = make_root(folder, spec["programs"]) if spec["private_root"] else ""
    bring_suppressions(root)
    furnish(folder, root, spec)
    enter(root)
    serve(spec)


def outer(folder: str, network: str) -> int:
    kernel.die_with_parent(signal.SIGKILL)
    with open(os.path.join(folder, "host.json"), encoding="utf-8") as file:
        spec = json.load(file)
    fd = os.open(network, os.O_RDONLY)
    kernel.setns(fd, kernel.CLONE_NEWNET)
    os.close(fd)
    kernel.unshare(kernel.CLONE_NEWPID | kernel.CLONE_NEWNS | kernel.CLONE_NEWUTS |
                   kernel.CLONE_NEWIPC)
    if not (child := os.fork()):
        inner(folder, spec)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) & 0xff


if __name__ == "__main__":
    sys.exit(outer(sys.argv[1], sys.argv[2]))
