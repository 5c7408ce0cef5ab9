"""The loader of a job: a DataLoader whose samples are those of this worker's share in each step."""
from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Iterator

import torch.utils.data
from torch.utils.data._utils.pin_memory import pin_memory

from .._library import Misuse

if TYPE_CHECKING:
    from ._job import Job

OURS = {"shuffle": "samples come in a new order in each epoch, given by seed=",
        "sampler": "each sample is used once in each epoch",
        "batch_sampler": "the job divides the samples", "drop_last": "no sample is dropped",
        "num_workers": "samples are fetched in the training process"}


class Loader:
    """One for each job. Each turn of it is one piece of a step, at most batch_size samples."""

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
        self._torch = torch.utils.data.DataLoader(
            dataset, **{name: value for name, value in keywords.items() if name not in OURS})

    def __len__(self) -> int:
        """Steps of an epoch, at the present global batch."""
        return math.ceil(len(self.dataset) / self._job.global_batch)

    def __iter__(self) -> Iterator[Any]:
        for samples in self._job.pieces():
            batch = self._torch.collate_fn(self._fetch(samples))
            yield pin_memory(batch) if self._torch.pin_memory else batch

    def _fetch(self, samples: list[int]) -> list[Any]:
        if hasattr(self.dataset, "__getitems__"):
            return self.dataset.__getitems__(samples)
        return [self.dataset[sample] for sample in samples]
