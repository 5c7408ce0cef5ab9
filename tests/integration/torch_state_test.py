#!/usr/bin/env python3
"""PyTorch: the state of optimizers and schedulers reaches a newcomer as it is, without a job."""
import unittest

from with_torch import TorchTest, alone

COMMON = """
import collections, json, warnings
import torch
from torch.optim.lr_scheduler import *
from elasticrun.torch import _packing
from elasticrun.torch._objects import Objects
warnings.simplefilter("ignore")
def same(a, b):
    if type(a) is not type(b): return False
    if callable(a): return True  # the own functions of a schedule
    if isinstance(a, torch.Tensor): return torch.equal(a, b)
    if isinstance(a, dict): return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)): return len(a) == len(b) and all(map(same, a, b))
    return a == b
def sgd(lr=0.1):
    return torch.optim.SGD([torch.nn.Parameter(torch.zeros(2, 3)) for _ in range(2)], lr)
"""
KINDS = COMMON + """
Counter, Ordered = collections.Counter, collections.OrderedDict
for value in ((1, (2, [3])), {1, 2}, frozenset({3}), Counter({5: 2}), Ordered([("b", 1), ("a", (2,))]),
              {"t": (1, 2), 7: {"deep": (8, {9}), "counts": [Counter({1: 1})]}, (1, 2): "key"},
              [(), set(), {}, [], None, True, 1.5, "text"], collections.deque([1, (2,)]),
              {"dict": 1, "kind": "tuple", "place": [], "tensor": ()}, torch.ones(2, 1)):
    assert same(_packing.unpack(_packing.pack(value)), value), value
"""
SCHEDULES = COMMON + """
def kinds(o):
    yield lambda o: MultiStepLR(o, [3, 6], 0.5)
    yield lambda o: CosineAnnealingLR(o, 10)
    yield lambda o: CosineAnnealingWarmRestarts(o, 4)
    yield lambda o: StepLR(o, 2)
    yield lambda o: ExponentialLR(o, 0.9)
    yield lambda o: ConstantLR(o, 0.5, 4)
    yield lambda o: LinearLR(o, 0.1, total_iters=5)
    yield lambda o: LambdaLR(o, lambda epoch: 0.9 ** epoch)
    yield lambda o: MultiplicativeLR(o, lambda epoch: 0.9)
    yield lambda o: CyclicLR(o, 0.01, 0.1, 3, cycle_momentum=False)
    yield lambda o: OneCycleLR(o, 0.2, 40, cycle_momentum=False)
    if "PolynomialLR" in globals(): yield lambda o: PolynomialLR(o, 9)
def rates(o, s, n):
    out = []
    for _ in range(n): o.step(); s.step(); out.append(o.param_groups[0]["lr"])
    return out
forms = [lambda o, make: make(o), lambda o, make: SequentialLR(o, [LinearLR(o, 0.1, total_iters=5), make(o)], [5]),
         lambda o, make: SequentialLR(o, [make(o), StepLR(o, 2)], [3]),
         lambda o, make: ChainedScheduler([ConstantLR(o, 0.5, 4), make(o)])]
for form in forms:
    for make in kinds(None):
        (one, a), (other, b) = ((o, form(o, make)) for o in (sgd(), sgd()))
        first, second = Objects(one, [a]), Objects(other, [b])
        rates(one, a, 2)
        second.take(first._packed())
        assert same(a.state_dict(), b.state_dict()), (a.state_dict(), b.state_dict())
        assert rates(one, a, 12) == rates(other, b, 12), type(a)
"""
OLD = COMMON + """
counter = {"dict": [["milestones", {"dict": [[3, 1], [6, 1]]}], ["gamma", 0.5], ["last_epoch", 4],
                    ["base_lrs", [0.1]], ["_step_count", 5], ["_last_lr", [0.05]]]}
groups = [{"dict": [["lr", 0.05], ["betas", [0.5, 0.9]]]}]
old = {"dict": [["groups", groups], ["values", {"dict": [[0, {"dict": [["n", 3]]}]]}], ["objects", [counter]],
                ["kinds", ["Adam", "MultiStepLR"]], ["first_batch", 8]]}
o = torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))], 0.1)
s = MultiStepLR(o, [3, 6], 0.5)
Objects(o, [s]).take(json.dumps(old).encode())
assert same(o.param_groups[0]["betas"], (0.5, 0.9)) and o.param_groups[0]["lr"] == 0.05
assert same(s.milestones, collections.Counter({3: 1, 6: 1})) and s.last_epoch == 4
assert list(o.state.values()) == [{"n": 3}]
"""
OPTIMIZERS = COMMON + """
def arrays(objects): return dict(objects._optimizer_tensors())
def carry(source, target):
    target.make_room([(name, 0) for name in arrays(source)])
    assert arrays(target).keys() == arrays(source).keys()
    for name, tensor in arrays(source).items(): arrays(target)[name].copy_(tensor)
    target.take(source._packed())
one, other = sgd(), sgd()
other.state["gone"] = torch.ones(1)
one.state["k"], one.state["n"], one.state["deep"] = torch.tensor([7]), 7, {"rows": (torch.ones(2),)}
for p in one.param_groups[0]["params"]:
    one.state[p].update(m=torch.ones(2, 3), GG=[torch.full((3, 3), 2.0), [torch.ones(1), 4]], step=5)
a, b = Objects(one, []), Objects(other, [])
for _ in range(2):
    carry(a, b)
    for key in ("k", "n", "deep"): assert same(one.state[key], other.state[key]), other.state
    assert "gone" not in other.state
    for p, q in zip(one.param_groups[0]["params"], other.param_groups[0]["params"]):
        assert same(dict(one.state[p]), dict(other.state[q])), other.state[q]
    one.state["k"] += 1
assert len(arrays(a)) == 2 + 2 * 3 and b"base64" not in a._packed() and len(a._packed()) < 1500
put_back = a.snapshot()
one.state["n"] = 8
put_back()
assert one.state["n"] == 7 and one.state["k"].item() == 9
"""


class State(TorchTest):
    def run_alone(self, program: str) -> None:
        ended = alone("-c", program)
        self.assertEqual(ended.returncode, 0, ended.stderr)

    def test_kinds(self) -> None:
        self.run_alone(KINDS)

    def test_schedules_in_schedules(self) -> None:
        self.run_alone(SCHEDULES)

    def test_saves_of_older_versions(self) -> None:
        self.run_alone(OLD)

    def test_state_of_optimizers(self) -> None:
        """Under names, and in lists: as arrays, with the types of what is around them."""
        self.run_alone(OPTIMIZERS)


if __name__ == "__main__":
    unittest.main()
