"""Elastic training in Python: workers join and leave while the others go on, with their state in
memory. Job is the library of elasticrun-worker(3) for arrays of any kind; `elasticrun-python(3)` says
how it is used.
"""
from ._job import Job, Listing, Step
from ._library import Evicted, Failed, Misuse, WorldChanged, version

__all__ = ["Evicted", "Failed", "Job", "Listing", "Misuse", "Step", "WorldChanged", "version"]
