"""The cables of a test bed: network namespaces, and a switch between them.

The switch is a bridge in a namespace of its own, with one veth to each host's namespace and one to
this machine. No namespace has a name: each lives as long as a process is in it or this process
holds its descriptor, so the kernel removes everything even when a test is killed, and beds do not
see each other. Only one interface is visible on this machine, er<pid>n<bed>.

Addresses are those set aside for testing networks (RFC 2544): 198.18.BED.HOST, where this machine
is 254; and unique local ones, fd18:BED::HOST. Hosts behind another one are on a second switch,
198.19.BED.HOST.
"""
import contextlib
import glob
import os
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field

from bed import kernel

HERE = 254   # this machine's end
NOBODY = 253  # an address that no host has
MOST_HOSTS = 250
SMALL = 600  # bytes: the largest packet on a path for small ones
NO_HARDWARE = "02:00:00:00:02:00"


def new_namespace() -> int:
    """A descriptor of a new network namespace, which is empty and has no address yet."""
    back = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    try:
        kernel.unshare(kernel.CLONE_NEWNET)
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    finally:
        kernel.setns(back, kernel.CLONE_NEWNET)
        os.close(back)


def path_of(namespace: int) -> str:
    return f"/proc/{os.getpid()}/fd/{namespace}"


def call(namespace: int | None, program: str, lines: list[str], *options: str) -> None:
    """Runs commands of ip or tc in a namespace, or in this one."""
    enter = [] if namespace is None else ["nsenter", f"--net={path_of(namespace)}"]
    done = subprocess.run([*enter, program, *options, "-batch", "-"], input="\n".join(lines) + "\n",
                          capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{program}: {done.stderr.strip()} (among {lines})")


@dataclass
class Plug:
    """Where a host is plugged in."""
    number: int
    family: str = "4"  # "4", "6" or "46"
    inner: bool = False  # on the second switch
    bastion: bool = False  # on the second switch too
    namespace: int = -1
    slow: bool = field(default=False, init=False)

    @property
    def port(self) -> str:
        return f"h{self.number}"

    @property
    def switch(self) -> str:
        return "inner" if self.inner else "outer"


class Network:
    def __init__(self) -> None:
        self.claim, self.number = self._claim()
        self.name = f"er{os.getpid()}n{self.number}"
        self.switch = new_namespace()
        self.narrowed: set[tuple[str, str]] = set()  # ports: from, to
        try:
            call(None, "ip", [
                f"link add {self.name} type veth peer name here netns {path_of(self.switch)}",
                f"addr add {self.address4(HERE)}/24 dev {self.name}",
                f"addr add {self.address6(HERE)}/64 dev {self.name} nodad",
                f"link set {self.name} up",
                # Inner hosts cannot be reached; without this route our gateway would be asked.
                f"route add {self.address4(0, inner=True)}/24 dev {self.name}"])
            call(self.switch, "ip", [
                "link add outer type bridge", "link set outer up",
                "link add inner type bridge", "link set inner up",
                "link set here up master outer"])
        except OSError:
            self.close()
            raise

    @staticmethod
    def _claim() -> tuple[socket.socket, int]:
        """A number that no other bed has, and whose old network the kernel has removed."""
        for number in range(1, 255):
            claim = socket.socket(socket.AF_UNIX)
            with contextlib.suppress(OSError):
                claim.bind(f"\0elasticrun-bed-{number}")  # the claim ends with this process
                if not glob.glob(f"/sys/class/net/er*n{number}"):
                    return claim, number
            claim.close()
        raise OSError("254 test beds are up already; try python3 tests/integration/bed clean")

    def address4(self, host: int, inner: bool = False) -> str:
        return f"198.{19 if inner else 18}.{self.number}.{host}"

    def address6(self, host: int) -> str:
        return f"fd18:{self.number:x}::{host:x}"

    def address(self, at: Plug) -> str:
        """The address by which the host is reached."""
        return (self.address4(at.number, at.inner) if "4" in at.family or at.inner
                else self.address6(at.number))

    # ------------------------------------------------------------ plugging

    def plug(self, sockets: list[Plug]) -> None:
        """Connects hosts; each gets a namespace, and always the same hardware address."""
        cables = []
        for at in sockets:
            at.namespace = new_namespace()
            at.slow = False
            cables += self._cable(at.port, "eth0", f"02:00:00:00:00:{at.number:02x}", at, at.switch)
            if at.bastion:
                mac = f"02:00:00:00:01:{at.number:02x}"
                cables += self._cable(f"i{at.number}", "eth1", mac, at, "inner")
        call(self.switch, "ip", cables)
        for at in sockets:
            call(at.namespace, "ip", self._configuration(at))

    @staticmethod
    def _cable(port: str, device: str, mac: str, at: Plug, switch: str) -> list[str]:
        return [f"link add {port} type veth peer name {device} address {mac} "
                f"netns {path_of(at.namespace)}", f"link set {port} up master {switch}"]

    def _configuration(self, at: Plug) -> list[str]:
        lines = ["link set lo up", "link set eth0 up"]
        if at.bastion:
            lines += ["link set eth1 up",
                      f"addr add {self.address4(at.number, inner=True)}/24 dev eth1"]
        if "4" in at.family or at.inner:
            lines += [f"addr add {self.address4(at.number, at.inner)}/24 dev eth0",
                      f"route add default via {self.address4(HERE, at.inner)}"]
        if "6" in at.family and not at.inner:
            lines += [f"addr add {self.address6(at.number)}/64 dev eth0 nodad",
                      f"route add default via {self.address6(HERE)}"]
        return lines

    def unplug(self, at: Plug) -> None:
        """Unplugs a host for good: its kernel can send nothing more (no FIN, no RST)."""
        if at.namespace < 0:
            return
        call(self.switch, "ip", [f"link del {at.port}"] +
             ([f"link del i{at.number}"] if at.bastion else []))
        os.close(at.namespace)
        at.namespace = -1

    # ------------------------------------------------------------ troubles

    def connect(self, at: Plug | None, connected: bool) -> None:
        """Connects or cuts the cable of a host, or ours. The cut takes no link down."""
        port = at.port if at else "here"
        switch = at.switch if at else "outer"
        call(self.switch, "ip", [f"link set {port} " +
                                 (f"master {switch}" if connected else "nomaster")])

    def limit(self, at: Plug, rate: str | None) -> None:
        """Limits both directions; the rate is in tc's notation, such as 50mbit."""
        if not rate and not at.slow:
            return
        for namespace, device in ((at.namespace, "eth0"), (self.switch, at.port)):
            call(namespace, "tc", [
                f"qdisc replace dev {device} root tbf rate {rate} burst 64k latency 200ms"
                if rate else f"qdisc del dev {device} root"])
        at.slow = bool(rate)

    def small_only(self, at: Plug) -> None:
        """Loses large packets from and to the host, as on a path whose MTU is not known.

        The path to this machine is set to small packets, so it reaches the host as before.
        """
        for namespace, device in ((at.namespace, "eth0"), (self.switch, at.port)):
            # Packets that are larger than the burst never get through.
            call(namespace, "tc", [
                f"qdisc replace dev {device} root tbf rate 1gbit burst {SMALL} latency 200ms"])
        agreed = f"mtu {SMALL - 100} advmss {SMALL - 140}"
        call(at.namespace, "ip", [
            f"route add {self.address4(HERE)}/32 dev eth0 {agreed}",
            f"route replace default via {self.address4(HERE)} {agreed}"])  # our other addresses
        at.slow = True

    def narrow(self, one: Plug, other: Plug) -> None:
        """Loses IPv4 packets of 512 bytes and more between these two hosts silently, as where a
        tunnel on the way has a smaller MTU and its messages are filtered out.

        They are redirected to a cable whose other end discards them, because not every kernel has
        tc's action that drops. A second call changes nothing; widen() ends it.
        """
        if "one_end" not in self._devices():
            call(self.switch, "ip", ["link add one_end type veth peer name other_end",
                                     "link set one_end up", "link set other_end up"])
        for at, to in ((one, other), (other, one)):
            if (at.port, to.port) in self.narrowed:
                continue
            if not any(port == at.port for port, _ in self.narrowed):
                call(self.switch, "tc", [f"qdisc add dev {at.port} ingress"])
            # A length of 512 or more has at least one of the seven high bits of its sixteen.
            call(self.switch, "tc", [
                f"filter add dev {at.port} parent ffff: protocol ip u32 "
                f"match ip dst {self.address4(to.number, to.inner)}/32 "
                f"match u16 {1 << bit:#06x} {1 << bit:#06x} at 2 "
                "action mirred egress redirect dev one_end" for bit in range(9, 16)])
            self.narrowed.add((at.port, to.port))

    def widen(self) -> None:
        """Ends narrow() for all hosts."""
        ports = {port for port, _ in self.narrowed} & self._devices()
        if ports:
            call(self.switch, "tc", [f"qdisc del dev {port} ingress" for port in sorted(ports)])
        self.narrowed.clear()

    def _devices(self) -> set[str]:
        """The devices of the switch."""
        shown = subprocess.run(["nsenter", f"--net={path_of(self.switch)}", "ip", "-brief", "link"],
                               capture_output=True, text=True, check=True).stdout
        return {line.partition(" ")[0].partition("@")[0] for line in shown.splitlines()}

    def firewall(self, at: Plug, silent: bool) -> None:
        """Keeps the host from connecting to any address of ours; ssh to the host still works.

        Silent: connection attempts get no answer, because they are sent to hardware that does not
        exist. (A blackhole route would refuse the local caller at once, and the answers of sshd
        with it.)
        """
        for option, width, address in (("-4", 32, self.address4), ("-6", 128, self.address6)):
            if option[1] not in at.family:
                continue
            here, nobody = f"{address(HERE)}/{width}", address(NOBODY)
            verdict = "lookup 77" if silent else "unreachable"
            default = f"default via {nobody} dev eth0" if silent else "unreachable default"
            call(at.namespace, "ip", [
                f"neigh replace {nobody} lladdr {NO_HARDWARE} dev eth0 nud permanent",
                f"route add {default} table 77",
                "route del default",
                f"route add {default}",
                f"rule add pref 10 to {here} ipproto tcp sport 22 lookup main",
                f"rule add pref 20 to {here} {verdict}"], option)

    def close(self, sockets: Sequence[Plug] = ()) -> None:
        """Closes the network; the kernel removes the rest later, as nothing refers to it."""
        if os.path.exists(f"/sys/class/net/{self.name}"):
            call(None, "ip", [f"link del {self.name}"])
        for at in sockets:
            if at.namespace >= 0:
                os.close(at.namespace)
        os.close(self.switch)
        self.claim.close()
