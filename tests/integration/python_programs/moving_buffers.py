"""The ways in which a program gives buffers other memory, as a job follows them."""
import torch
from torch import nn

from moving_parameters import Row, followed, line


class Mean(nn.Linear):
    """Has a mean of its inputs, which an answer takes as it was before: it is the same for any shares."""

    def __init__(self):
        super().__init__(4, 1)
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("before", torch.zeros(4))
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("flags", torch.zeros(4, dtype=torch.bool))
        self.register_buffer("table", torch.zeros(1), persistent=False)

    def next(self, x):
        return 0.9 * self.mean + 0.1 * x.detach().mean(0)

    def forward(self, x):
        answer = super().forward(x - self.mean)
        self.update(x)
        return answer

    def update(self, x):
        self.mean.copy_(self.next(x))


@followed
class buffer_in_place(Row):
    def make(self):
        return Mean()


@followed
class buffer_assigned(Row):
    class Model(Mean):
        def update(self, x):
            self.mean = self.next(x)

    def make(self):
        return self.Model()


@followed
class buffer_data_assigned(buffer_assigned):
    class Model(Mean):
        def update(self, x):
            self.mean.data = self.next(x)


@followed
class buffer_and_the_one_before(buffer_assigned):
    class Model(Mean):
        def update(self, x):
            self.before = self.mean
            self.mean = self.next(x)


@followed
class buffers_swapped(buffer_assigned):
    class Model(Mean):
        def update(self, x):
            self.mean, self.before = self.before, self.mean
            self.mean += 0.1 * x.detach().mean(0)


@followed
class counter_assigned(buffer_assigned):
    class Model(Mean):
        def update(self, x):
            self.count = self.count + 1


@followed
class flags_assigned(buffer_assigned):
    class Model(Mean):
        def update(self, x):
            self.flags = ~self.flags


@followed
class flags_after_epoch(Row):
    def make(self):
        return Mean()

    def after_epoch(self, opt):
        self.model.flags = ~self.model.flags


@followed
class table_of_other_length(buffer_assigned):
    """A buffer that is in no state_dict is made anew where that is needed."""
    class Model(Mean):
        def update(self, x):
            self.mean = self.next(x)
            self.table = torch.zeros(len(x) + 2)
            self.register_buffer("other_table", torch.zeros(2), persistent=False)


@followed
class buffer_cloned_after_epoch(buffer_assigned):
    def after_epoch(self, opt):
        self.model.mean = self.model.mean.clone()


@followed
class buffer_before_the_first_step(buffer_assigned):
    def after_job(self, opt):
        self.model.mean = torch.ones(4, dtype=torch.float64)


@followed
class batch_norm_of_types(Row):
    def make(self):
        return nn.Sequential(nn.BatchNorm1d(4, affine=False), line()).eval()

    def after_job(self, opt):
        self.model.float().double()
