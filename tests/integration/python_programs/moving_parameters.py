"""The ways in which a program gives parameters other memory, as a job follows them."""
import copy

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, parametrize, prune, vector_to_parameters

FOLLOWED = {}


def followed(row):
    FOLLOWED[row.__name__] = row
    return row


def line():
    return nn.Linear(4, 1)


def assign(model, function):
    for parameter in model.parameters():
        parameter.data = function(parameter.data)


class Row:
    """Has a model, and what the program does to it at some moments; that has effect where it is named."""

    def __init__(self):
        self.model = self.make()

    def make(self):
        return line()

    def after_job(self, opt):
        pass

    def after_backward(self, opt):
        pass

    def after_step(self, opt):
        pass

    def after_epoch(self, opt):
        """After two of the epochs."""


@followed
class calm(Row):
    pass


@followed
class data_after_job(Row):
    def after_job(self, opt):
        assign(self.model, lambda data: data * 0.5)


@followed
class data_after_step(Row):
    def after_step(self, opt):
        assign(self.model, lambda data: data.clamp(-0.4, 0.4))


@followed
class data_after_epoch(Row):
    def after_epoch(self, opt):
        assign(self.model, lambda data: data * 0.5)


@followed
class data_after_backward(Row):
    def after_backward(self, opt):
        assign(self.model, lambda data: data * 0.99)


class Limited(nn.Linear):
    """As in EEGNet."""

    def forward(self, x):
        self.weight.data = torch.renorm(self.weight.data, p=2, dim=0, maxnorm=0.3)
        return super().forward(x)


@followed
class renorm_in_forward(Row):
    def make(self):
        return Limited(4, 1)


class Fading(nn.Linear):
    def forward(self, x):
        self.weight.data = self.weight.data * 0.99
        return super().forward(x)


@followed
class data_in_forward(Row):
    def make(self):
        return Fading(4, 1)


class Binary(nn.Linear):
    """Computes with the signs of its weights, and trains the weights."""

    def forward(self, x):
        self.kept = self.weight.data
        self.weight.data = self.kept.sign()
        return super().forward(x)


@followed
class signs_in_forward(Row):
    def make(self):
        return Binary(4, 1)

    def after_backward(self, opt):
        self.model.weight.data = self.model.kept


@followed
class vector_after_job(Row):
    def after_job(self, opt):
        vector_to_parameters(parameters_to_vector(self.model.parameters()), self.model.parameters())


@followed
class vector_after_step(Row):
    def after_step(self, opt):
        vector_to_parameters(parameters_to_vector(self.model.parameters()) * 0.99,
                             self.model.parameters())


@followed
class types_after_job(Row):
    def after_job(self, opt):
        self.model.float().double()


@followed
class types_after_epoch(Row):
    def make(self):
        return nn.Sequential(line(), nn.Tanh(), nn.Linear(1, 1))

    def after_epoch(self, opt):
        self.model.to(torch.float32).to(torch.float64)


class Conv(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(4, 3, (2, 2), padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(12, 1))

    def forward(self, x):
        return super().forward(x.reshape(-1, 4, 1, 1))


@followed
class channels_last_after_job(Row):
    def make(self):
        return Conv()

    def after_job(self, opt):
        self.model.to(memory_format=torch.channels_last)


@followed
class channels_last_after_epoch(channels_last_after_job):
    def after_job(self, opt):
        pass

    def after_epoch(self, opt):
        self.model.to(memory_format=torch.channels_last)


@followed
class averages_by_clones(Row):
    def after_epoch(self, opt):
        kept = [p.data.clone() for p in self.model.parameters()]
        assign(self.model, lambda data: data * 0.9)
        for parameter, data in zip(self.model.parameters(), kept):
            parameter.data = data


@followed
class averages_by_exchange(Row):
    def after_epoch(self, opt):
        kept = [p.data for p in self.model.parameters()]
        assign(self.model, lambda data: data * 0.9)
        for parameter, data in zip(self.model.parameters(), kept):
            parameter.data = data


@followed
class averages_in_a_step(Row):
    def after_step(self, opt):
        kept = {n: p.data.clone() for n, p in self.model.named_parameters()}
        assign(self.model, torch.zeros_like)
        for name, parameter in self.model.named_parameters():
            parameter.data = kept[name]


@followed
class set_after_epoch(Row):
    def after_epoch(self, opt):
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.set_(parameter.detach() * 0.5)


@followed
class tensors_swapped(Row):
    """With torch 2.3 and newer."""

    def after_epoch(self, opt):
        if not hasattr(torch.utils, "swap_tensors"):
            assign(self.model, lambda data: data * 0.5)
            return
        for parameter in self.model.parameters():
            torch.utils.swap_tensors(parameter, nn.Parameter(parameter.detach() * 0.5))


@followed
class set_of_data(Row):
    """Which changes no parameter."""

    def after_epoch(self, opt):
        for parameter in self.model.parameters():
            parameter.data.set_(parameter.data * 0.5)


class Square(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))


@followed
class transposed(Row):
    def make(self):
        return Square()

    def after_epoch(self, opt):
        self.model[0].weight.data = self.model[0].weight.data.t()


@followed
class layers_swapped(Row):
    def make(self):
        return Square()

    def after_epoch(self, opt):
        one, other = self.model[0].weight, self.model[2].weight
        one.data, other.data = other.data, one.data


@followed
class frozen(Row):
    def make(self):
        model = Square()
        model[0].requires_grad_(False)
        return model

    def after_epoch(self, opt):
        assign(self.model[0], lambda data: data * 0.5)


@followed
class gradients(Row):
    def after_backward(self, opt):
        for parameter in self.model.parameters():
            parameter.grad.data = parameter.grad.data * 0.5


@followed
class tied(Row):
    def make(self):
        model = Square()
        model[2].weight = model[0].weight
        return model

    def after_epoch(self, opt):
        self.model.float().double()


@followed
class weight_norm(Row):
    def make(self):
        return nn.utils.weight_norm(nn.Linear(4, 1))

    def after_epoch(self, opt):
        self.model.weight_g.data = self.model.weight_g.data * 0.5


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


@followed
class parametrized(Row):
    def make(self):
        model = line()
        parametrize.register_parametrization(model, "weight", Doubled())
        return model

    def after_epoch(self, opt):
        assign(self.model, lambda data: data * 0.5)


@followed
class scripted(data_after_epoch):
    def make(self):
        return torch.jit.script(Square())


@followed
class pruned(Row):
    def make(self):
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
        prune.l1_unstructured(model[0], "weight", 0.5)
        return model

    def after_epoch(self, opt):
        assign(self.model, lambda data: data.clone())


@followed
class copied(Row):
    def after_epoch(self, opt):
        copied = copy.deepcopy(self.model)
        assign(copied, torch.zeros_like)
        self.model.load_state_dict(copy.deepcopy(self.model).state_dict())


@followed
class state_loaded(Row):
    def after_epoch(self, opt):
        self.model.load_state_dict({name: tensor * 0.5 for name, tensor in
                                    self.model.state_dict().items()})


@followed
class optimizer_loaded(Row):
    def after_epoch(self, opt):
        opt.load_state_dict(copy.deepcopy(opt.state_dict()))


@followed
class activation_replaced(Row):
    def make(self):
        return nn.Sequential(line(), nn.Identity())

    def after_epoch(self, opt):
        self.model[1] = nn.Identity()


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.last = nn.LSTM(1, 2, batch_first=True), nn.Linear(2, 1)

    def forward(self, x):
        self.inner.flatten_parameters()
        return self.last(self.inner(x.unsqueeze(2))[0][:, -1])


@followed
class flattened(Row):
    def make(self):
        return Lstm()

    def after_epoch(self, opt):
        vector_to_parameters(parameters_to_vector(self.model.parameters()), self.model.parameters())
