"""The ways in which a program gives a model other tensors, or gives tensors other memory, that a job
refuses (REFUSED)."""
import copy

import torch
from torch import nn
from torch.nn.utils import parametrize, prune

import elasticrun.torch as er
from moving_buffers import Mean
from moving_parameters import Doubled, Square, line


def exchange_parameter(model, opt):
    model.weight = nn.Parameter(model.weight.detach().clone())


def exchange_in_both(model, opt):
    exchange_parameter(model, opt)
    opt.param_groups[0]["params"][0] = model.weight


def exchange_in_optimizer(model, opt):
    opt.param_groups[0]["params"][0] = nn.Parameter(model.weight.detach().clone())


def exchange_layer(model, opt):
    model[0] = nn.Linear(4, 4)


def overwrite_parameters(model, opt):
    torch.__future__.set_overwrite_module_params_on_conversion(True)
    model.double().float()


def assign_state(model, opt):
    state = copy.deepcopy(model.state_dict())
    if "assign" in torch.nn.Module.load_state_dict.__code__.co_varnames:  # 2.1 and newer
        model.load_state_dict(state, assign=True)
    else:
        exchange_parameter(model, opt)


def tie(model, opt):
    model[2].weight = model[0].weight


def tie_data(model, opt):
    model[2].weight.data = model[0].weight.data


def tie_by_vector(model, opt):
    vector = torch.zeros(20)
    model[0].weight.data, model[2].weight.data = vector[:16].view(4, 4), vector[4:].view(4, 4)


def half(model, opt):
    model.half()


def of_another_shape(model, opt):
    model.weight.data = model.weight.data[:, :2]


def resized(model, opt):
    model.weight.data.resize_(100)


def without_memory(model, opt):
    model.weight.data.storage().resize_(0)


def aside(model, opt):
    if not hasattr(model, "kept"):
        model.kept = model.weight.data
        model.weight.data = torch.zeros(1, 4)
    else:
        model.weight.data = model.kept


def set_mean(model, opt):
    model.mean = model.mean + 1


def set_mean_to_doubles(model, opt):
    model.mean = model.mean.double()


def forget_mean(model, opt):
    del model.mean


def share_buffers(model, opt):
    model.before = model.mean


def untie(model, opt):
    model[0].weight.data = model[0].weight.data.clone()


def tied_data():
    model = Square()
    model[2].weight.data = model[0].weight.data
    return model


# By name: the model, what is done to it after an epoch, and what the error says of that.
REFUSED = {
    "a parameter": (line, exchange_parameter, "'weight' is another object than at Job()"),
    "a parameter of both": (line, exchange_in_both, "'weight' is another object than at Job()"),
    "one of the optimizer": (line, exchange_in_optimizer,
                             "the optimizer has another parameter in place of 'weight'"),
    "a layer": (Square, exchange_layer, "'0.weight' is another object than at Job()"),
    "parameters of a conversion": (line, overwrite_parameters,
                                   "'weight' is another object than at Job()"),
    "parameters of a state": (line, assign_state, "'weight' is another object than at Job()"),
    "a layer added": (Square, lambda model, opt: model.append(line()),
                      "'5.weight' was added after Job()"),
    "a parameter added": (line, lambda model, opt: model.register_parameter(
        "scale", nn.Parameter(torch.ones(1))), "'scale' was added after Job()"),
    "a buffer added": (line, lambda model, opt: model.register_buffer("scale", torch.ones(1)),
                       "'scale' was added after Job()"),
    "a parameter removed": (line, lambda model, opt: model.register_parameter("bias", None),
                            "'bias' is no longer in the model"),
    "pruning": (line, lambda model, opt: prune.l1_unstructured(model, "weight", 0.5),
                "'weight' is 'weight_orig' now"),
    "a parametrization": (line, lambda model, opt: parametrize.register_parametrization(
        model, "weight", Doubled()), "'weight' is 'parametrizations.weight.original' now"),
    "weight norm": (line, lambda model, opt: nn.utils.weight_norm(model),
                    "'weight' is no longer in the model"),
    "spectral norm": (line, lambda model, opt: nn.utils.spectral_norm(model),
                      "'weight' is 'weight_orig' now"),
    "tied": (Square, tie, "'2.weight' is another object than at Job()"),
    "tied by data": (Square, tie_data, "'0.weight' and '2.weight' share memory now"),
    "tied in part": (Square, tie_by_vector, "'0.weight' and '2.weight' share memory now"),
    "untied data": (tied_data, untie, "'0.weight' has other memory than at Job(), where it shared"),
    "another type": (line, half, "'weight' is float16 [1, 4] on cpu, and was float32 [1, 4]"),
    "another shape": (line, of_another_shape, "'weight' is float32 [1, 2] on cpu, and"),
    "resized": (line, resized, "'weight' was resized after Job()"),
    "without memory": (line, without_memory, "'weight' was resized after Job()"),
    "put aside over a step": (line, aside, "'weight' has the memory again that it had at Job()"),
    "a buffer's values": (Mean, set_mean, "the buffer 'mean' has got other values between two steps"),
    "a buffer's type": (Mean, set_mean_to_doubles, "'mean' is float64 [4] on cpu, and"),
    "no buffer": (Mean, forget_mean, "'mean' is no longer in the model"),
    "buffers that are one": (Mean, share_buffers, "'mean' and 'before' share memory now"),
}


def train(make, action):
    """Trains a model with a job, and does that to it after each epoch."""
    model = make()
    opt = torch.optim.SGD(model.parameters(), 0.1)
    job = er.Job(model, opt)
    kind = next(model.parameters()).dtype
    data = torch.utils.data.TensorDataset(torch.ones(4, 4, dtype=kind))
    for _ in job.epochs(3):
        for x, in job.loader(data, batch_size=2):
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
        action(model, opt)
