"""torchdiffeq: solvers call the program's function for every step; what they return has its graph."""

import torch


def odeint(func, y0, t, *, rtol=1e-7, atol=1e-9, method=None, options=None, event_fn=None):
    return _solved(func, y0, t)


def odeint_adjoint(
    func,
    y0,
    t,
    *,
    rtol=1e-7,
    atol=1e-9,
    method=None,
    options=None,
    event_fn=None,
    adjoint_rtol=None,
    adjoint_atol=None,
    adjoint_method=None,
    adjoint_options=None,
    adjoint_params=None,
):
    return _solved(func, y0, t)


def _solved(func, y0, t):
    if isinstance(y0, (tuple, list)):
        y = tuple(y0)
        states = [y]
        for at in t[1:]:
            y = tuple(state + rate for state, rate in zip(y, func(at, y)))
            states.append(y)
        return tuple(torch.stack(parts) for parts in zip(*states))
    y = y0
    states = [y]
    for at in t[1:]:
        y = y + func(at, y)
        states.append(y)
    return torch.stack(states)
