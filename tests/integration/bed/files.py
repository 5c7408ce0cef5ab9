"""The files of a test bed: keys, the disk of each host, and what a user of the bed needs.

Every host has a key of its own, and the configuration contains addresses, so that no name service,
no entry in the machine's files and no key of the user is needed.
"""
import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from bed.kernel import UP

OPTIONS = {  # of sshd: Debian's defaults, but no accounts and no outside answers
    "HostKey": "/etc/ssh/host_key",
    "AuthorizedKeysFile": "/etc/ssh/authorized_keys",
    "PidFile": UP,
    "StrictModes": "no",
    "UsePAM": "no",
    "UseDNS": "no",
    "PermitRootLogin": "prohibit-password",
    "PasswordAuthentication": "no",
    "KbdInteractiveAuthentication": "no",
    "PrintMotd": "no",
    "Subsystem": "sftp /usr/lib/openssh/sftp-server",
}
ALL_HOSTS = """Host *
  User root
  IdentityFile {identity}
  IdentitiesOnly yes
  UserKnownHostsFile {known_hosts}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  BatchMode yes
"""
Record = dict[str, Any]  # a host's Spec and address


@dataclass
class Files:
    hosts: str
    ssh_config: str
    identity: str
    known_hosts: str


def write(path: str, text: str, mode: int = 0o644) -> str:
    with open(path, "w", encoding="utf-8", opener=lambda p, f: os.open(p, f, mode)) as file:
        file.write(text)
    return path


def make_keys(paths: list[str]) -> None:
    """Makes all keys at the same time, because each takes some milliseconds."""
    running = [subprocess.Popen(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "bed",
                                 "-f", path], stdin=subprocess.DEVNULL) for path in paths]
    if any([one.wait() for one in running]):
        raise OSError("ssh-keygen failed")


def public(path: str) -> str:
    with open(path + ".pub", encoding="ascii") as file:
        return " ".join(file.read().split()[:2])


def write_host(folder: str, host: Record, everyone: str, authorized: str) -> None:
    names = everyone or f"127.0.1.1 {host['name']}\n"
    write(os.path.join(folder, "hosts"), "127.0.0.1 localhost\n::1 localhost\n" + names)
    write(os.path.join(folder, "hostname"), host["name"] + "\n")
    write(os.path.join(folder, "resolv.conf"), "")
    write(os.path.join(folder, "host.json"), json.dumps(host))
    options = OPTIONS | host["options"]
    write(os.path.join(folder, "ssh", "sshd_config"),
          "".join(f"{key} {value}\n" for key, value in options.items() if value))
    write(os.path.join(folder, "ssh", "authorized_keys"), authorized + "\n")
    if host["bashrc"]:
        write(os.path.join(folder, "home", ".bashrc"), host["bashrc"] + "\n")
    os.chmod(os.path.join(folder, "tmp"), 0o1777)


def ssh_entry(host: Record) -> str:
    jump = f"  ProxyJump {host['behind']}\n" if host["behind"] else ""
    return f"Host {host['name']}\n  HostName {host['address']}\n{jump}"


def make(folder: str, hosts: list[Record], names: bool) -> Files:
    """Makes all files of the bed, below its folder."""
    folders = {host["name"]: os.path.join(folder, "hosts", host["name"]) for host in hosts}
    for path in folders.values():
        for below in ("ssh", "home", "tmp", "root", "groups"):
            os.makedirs(os.path.join(path, below))
    identity, other = os.path.join(folder, "id"), os.path.join(folder, "other")
    host_keys = {name: os.path.join(path, "ssh", "host_key") for name, path in folders.items()}
    make_keys([identity, other, *host_keys.values()])
    everyone = "".join(f"{host['address']} {host['name']}\n" for host in hosts) if names else ""
    for host in hosts:
        write_host(folders[host["name"]], host, everyone, public(identity))
    shown = {"known": host_keys.get, "changed": lambda name: other}
    known = [f"{host['address']} {public(shown[host['key']](host['name']))}\n"
             for host in hosts if host["key"] != "unknown"]
    known_hosts = write(os.path.join(folder, "known_hosts"), "".join(known))
    general = ALL_HOSTS.format(identity=identity, known_hosts=known_hosts)
    return Files(
        write(os.path.join(folder, "hosts.txt"),
              "".join(f"{host['name']} slots={host['slots']}\n" for host in hosts)),
        write(os.path.join(folder, "ssh_config"), "".join(map(ssh_entry, hosts)) + general),
        identity, known_hosts)
