"""Fake GPUs for a host of a test bed: the files of the kernel and of NVIDIA's driver, without GPUs.

Device nodes, the driver's folder in /proc, the PCI bus in /sys and the kernel's log are folders and
files made here, mounted over the host's. So the programs under test look where they always look.
CUDA cannot run on such a host.
"""
import shlex
from collections.abc import Sequence

from bed import Host

INFORMATION = """Model: \t\t NVIDIA H100 80GB HBM3
IRQ:   \t\t 10
GPU UUID: \t {uuid}
Video BIOS: \t 96.00.99.00.01
Bus Type: \t PCIe
DMA Size: \t 52 bits
DMA Mask: \t 0xfffffffffffff
Bus Location: \t {location}
Device Minor: \t {minor}
GPU Firmware: \t 535.129.03
GPU Excluded:\t No
"""
# What a worker, ssh and python need from the real /dev.
DEVICES = ["full", "null", "random", "tty", "urandom", "zero"]
LINKS = {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}
SYSTEM = """
set -e
mkdir /run/dev /run/dev/shm
for name in {devices}; do touch /run/dev/$name; mount --bind /dev/$name /run/dev/$name; done
{links}
touch /run/dev/kmsg
mount --rbind /run/dev /dev
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /proc/driver
mount -t tmpfs tmpfs /sys/bus/pci/devices
mkdir -p /proc/driver/nvidia/gpus
"""


class Gpus:
    """A GPU for each UUID, on the buses 0x10, 0x11, ... of a host that is up."""

    def __init__(self, host: Host, uuids: Sequence[str]) -> None:
        self.host = host
        links = "; ".join(f"ln -s {to} /run/dev/{name}" for name, to in LINKS.items())
        script = SYSTEM.format(devices=" ".join(DEVICES), links=links)
        for number, uuid in enumerate(uuids):
            location = self.location(number)
            text = INFORMATION.format(uuid=uuid, location=location, minor=number)
            script += f"""
touch /dev/nvidia{number}
mkdir /proc/driver/nvidia/gpus/{location} /sys/bus/pci/devices/{location}
printf %s {shlex.quote(text)} > /proc/driver/nvidia/gpus/{location}/information
printf '\\336\\020' > /sys/bus/pci/devices/{location}/config
echo 0x030200 > /sys/bus/pci/devices/{location}/class
"""
        self.shell(script)

    @staticmethod
    def location(number: int) -> str:
        return f"0000:{16 + number:02x}:00.0"

    def shell(self, script: str) -> None:
        done = self.host.run("sh", "-c", script)
        if done.returncode != 0:
            raise OSError(f"{self.host.name}: {done.stderr}")

    def fall_off_the_bus(self, number: int) -> None:
        """The bus answers for the GPU with ones, as for every absent device."""
        self.shell(f"printf '\\377\\377' > /sys/bus/pci/devices/{self.location(number)}/config")

    def answer(self, number: int) -> None:
        """The GPU answers again, as after its host was switched off and on."""
        self.shell(f"printf '\\336\\020' > /sys/bus/pci/devices/{self.location(number)}/config")

    def vanish(self, number: int) -> None:
        """The driver no longer lists the GPU."""
        self.shell(f"rm -r /proc/driver/nvidia/gpus/{self.location(number)}")

    def xid(self, number: int, code: int, text: str) -> None:
        """The driver reports an error in the kernel's log."""
        line = f"4,1234,987654321,-;NVRM: Xid (PCI:{self.location(number)[:-2]}): {code}, {text}"
        self.shell(f"echo {shlex.quote(line)} >> /dev/kmsg")
