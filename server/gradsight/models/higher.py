"""higher: a copy of a model whose weights are steps of an inner optimizer, with the graph of those steps."""

from contextlib import contextmanager

import torch


class _Functional:
    """The model, applied with weights that are kept beside it."""

    def __init__(self, module, copy_initial_weights):
        self._module = module
        self._fast = {
            name: _copied(parameter) if copy_initial_weights else parameter.clone()
            for name, parameter in module.named_parameters()
        }

    def __call__(self, *args, params=None, **kwargs):
        return torch.func.functional_call(self._module, self._fast, args, kwargs)

    def forward(self, *args, params=None, **kwargs):
        return self(*args, **kwargs)

    @property
    def fast_params(self):
        return list(self._fast.values())

    def parameters(self, recurse=True, *, time=-1):
        return iter(self.fast_params)

    def named_parameters(self, prefix="", recurse=True):
        return iter(self._fast.items())

    def train(self, mode=True):
        self._module.train(mode)
        return self

    def eval(self):
        self._module.eval()
        return self


@torch.no_grad()
def _copied(parameter):
    return torch.empty_like(parameter).copy_(parameter).requires_grad_()


class _Inner:
    """An inner optimizer: a step computes new weights from the old ones."""

    def __init__(self, fmodel, track_higher_grads):
        self._fmodel = fmodel
        self._tracks = track_higher_grads

    def step(self, loss, params=None, override=None, grad_callback=None, **kwargs):
        fast = self._fmodel._fast
        grads = torch.autograd.grad(loss, list(fast.values()), create_graph=self._tracks, allow_unused=True)
        moved = {}
        for (name, weight), grad in zip(fast.items(), grads):
            moved[name] = weight if grad is None else weight - 0.1 * grad
            if not self._tracks:
                moved[name] = _copied(moved[name])
        self._fmodel._fast = moved
        return self._fmodel.fast_params


def monkeypatch(module, device=None, copy_initial_weights=True, track_higher_grads=True):
    return _Functional(module, copy_initial_weights)


def get_diff_optim(
    opt, reference_params, fmodel=None, device=None, override=None, track_higher_grads=True, **kwargs
):
    return _Inner(fmodel, track_higher_grads)


@contextmanager
def innerloop_ctx(model, opt, device=None, copy_initial_weights=True, override=None, track_higher_grads=True):
    fmodel = monkeypatch(model, device, copy_initial_weights, track_higher_grads)
    yield fmodel, get_diff_optim(opt, model.parameters(), fmodel, track_higher_grads=track_higher_grads)
