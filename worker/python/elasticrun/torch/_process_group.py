"""A process group of torch.distributed, which a script for torchrun makes."""
from __future__ import annotations

import os

import torch

from .._library import Misuse


def refuse() -> None:
    """The workers of the first world would form it, and newcomers would wait for them in it."""
    group = torch.distributed
    if "ELASTICRUN_SOCKET" in os.environ and group.is_available() and group.is_initialized():
        raise Misuse("Job: torch.distributed has a process group, in which a newcomer would wait until its "
                     "time is up; leave out init_process_group (and what calls it): the job takes its place")
