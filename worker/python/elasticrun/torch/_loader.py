"""The loader of a job: a DataLoader whose samples are those of this worker's share in each step."""
from __future__ import annotations

import collections
import math
from typing import TYPE_CHECKING, Any, Callable, Iterator, Optional

import torch
import torch.utils.data

from .._library import Misuse

if TYPE_CHECKING:
    from ._job import Job

OURS = {"shuffle": "samples come in a new order in each epoch, given by seed=",
        "sampler": "each sample is used once in each epoch; elasticrun-migration(7) says what takes its "
                   "place, such as torch.utils.data.Subset",
        "batch_sampler": "the job divides the samples", "drop_last": "no sample is dropped"}


class Loader:
    """One for each job. Each turn of it is one piece of a step, at most batch_size samples. The
    DataLoader inside fetches the pieces that come if the world stays; when they come otherwise, what it
    has fetched is dropped."""

    def __init__(self, job: Job, dataset: Any, batch_size: int, seed: int, keywords: dict[str, Any]):
        if isinstance(dataset, torch.utils.data.IterableDataset) or not hasattr(dataset, "__len__"):
            raise Misuse("loader: the dataset has no length; a job needs one with len() and indices")
        if len(dataset) == 0:
            raise Misuse("loader: the dataset is empty")
        if batch_size < 1:
            raise Misuse(f"loader: batch_size is {batch_size}; it is at least 1")
        for name, value in keywords.items():
            off = value is None or isinstance(value, int) and not value
            if name in OURS and (value is False if name == "shuffle" else not off):
                raise Misuse(f"loader: {name}={value} is not taken: {OURS[name]}")
        self.dataset, self.batch_size, self.seed, self.keywords = dataset, batch_size, seed, keywords
        self._job = job
        self._plan = Plan(job.upcoming)
        self._options = {name: value for name, value in keywords.items() if name not in OURS}
        # The seeds of its workers: from a generator of the program a step that is repeated would
        # draw them again.
        self._options.setdefault("generator", torch.Generator().manual_seed(torch.initial_seed()))
        # A change of the world lets its processes go on, and the end of an epoch does if asked for.
        self._stays = bool(self._options.pop("persistent_workers", False))
        self._kept = self._make() if self._stays else None

    def is_for(self, dataset: Any, batch_size: int, seed: int, keywords: dict[str, Any]) -> bool:
        """Whether another call asks for this one. A dataset that the loop makes anew in each epoch counts
        as the first one; functions do, too."""
        mine, others = ({name: value for name, value in each.items() if not callable(value)}
                        for each in (self.keywords, keywords))
        return (type(dataset) is type(self.dataset) and len(dataset) == len(self.dataset)
                and (self.batch_size, self.seed, mine) == (batch_size, seed, others))

    def __len__(self) -> int:
        """Steps of an epoch, at the global batch with which the job began."""
        return math.ceil(len(self.dataset) / self._job.first_batch)

    def __iter__(self) -> Iterator[Any]:
        loader = self._make() if self._kept is None else self._kept
        batches: Optional[Iterator[Any]] = None
        for samples in self._job.pieces():
            if not self._plan.goes_on_with(samples) or batches is None:
                self._plan.begin_with(samples)
                batches = iter(loader)
            batch = next(batches)
            self._plan.used()
            yield batch

    def _make(self) -> torch.utils.data.DataLoader:
        persistent = self._stays or bool(self._options.get("num_workers"))
        return torch.utils.data.DataLoader(self.dataset, batch_sampler=self._plan,
                                           persistent_workers=persistent, **self._options)


class Plan:
    """What a DataLoader is to fetch: the present piece, and those that follow it in this epoch.
    `upcoming` gives the piece that follows after some others."""

    def __init__(self, upcoming: Callable[[int], Optional[list[int]]]) -> None:
        self._upcoming = upcoming
        self._given: collections.deque[list[int]] = collections.deque()  # from the present piece on
        self._present: list[int] = []
        self._over = True  # no more is given until begin_with

    def goes_on_with(self, samples: list[int]) -> bool:
        """Whether the piece that begins now is the one that was given for this time."""
        self._present = samples
        return self._given[0] == samples if self._given else not self._over

    def begin_with(self, samples: list[int]) -> None:
        self._given.clear()
        self._present, self._over = samples, False

    def used(self) -> None:
        self._given.popleft()

    def __iter__(self) -> Plan:
        return self

    def __next__(self) -> list[int]:
        piece = self._upcoming(len(self._given) - 1) if self._given else self._present
        if piece is None:
            self._over = True
            raise StopIteration
        self._given.append(piece)
        return piece
