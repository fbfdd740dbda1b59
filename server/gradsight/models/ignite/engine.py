"""`Engine`: the user's function for every batch, handlers at events; and the trainers that the library makes."""

import argparse

import torch


class _Event:
    def __init__(self, name):
        self.name = name

    def __call__(self, event_filter=None, every=None, once=None, before=None, after=None):
        return self


class Events:
    STARTED = _Event("started")
    COMPLETED = _Event("completed")
    EPOCH_STARTED = _Event("epoch_started")
    EPOCH_COMPLETED = _Event("epoch_completed")
    ITERATION_STARTED = _Event("iteration_started")
    ITERATION_COMPLETED = _Event("iteration_completed")
    GET_BATCH_STARTED = _Event("get_batch_started")
    GET_BATCH_COMPLETED = _Event("get_batch_completed")


class Engine:
    def __init__(self, process_function):
        self.state = argparse.Namespace()
        self.process_function = process_function
        self.handlers = []
        self.has_run = False

    def __gradsight_driver__(self):
        """An engine that a function makes and gives to its caller is run there."""
        if not self.has_run:
            self.run(torch.utils.data.DataLoader([]))

    def add_event_handler(self, event_name, handler, *args, **kwargs):
        self.handlers.append((event_name, handler, args, kwargs))

    def on(self, event_name, *args, **kwargs):
        def decorator(function):
            self.add_event_handler(event_name, function, *args, **kwargs)
            return function

        return decorator

    def run(self, data=None, max_epochs=1, epoch_length=None):
        if data is None:
            data = torch.utils.data.DataLoader([])
        self.has_run = True
        self._fire(Events.STARTED)
        for epoch in range(max_epochs):
            self.state.epoch = epoch + 1
            self._fire(Events.EPOCH_STARTED)
            for batch in data:
                self.state.batch = batch
                self._fire(Events.ITERATION_STARTED)
                self.state.output = self.process_function(self, batch)
                self._fire(Events.ITERATION_COMPLETED)
            self._fire(Events.EPOCH_COMPLETED)
        self._fire(Events.COMPLETED)
        return self.state

    def terminate(self):
        pass

    def _fire(self, event):
        for name, handler, args, kwargs in self.handlers:
            if name is event:
                handler(self, *args, **kwargs)


def _prepared(batch, device=None, non_blocking=False):
    x, y = batch
    return x, y


def create_supervised_trainer(
    model,
    optimizer,
    loss_fn,
    device=None,
    non_blocking=False,
    prepare_batch=_prepared,
    model_transform=lambda output: output,
    output_transform=lambda x, y, y_pred, loss: loss.item(),
    deterministic=False,
    amp_mode=None,
    scaler=False,
    gradient_accumulation_steps=1,
    model_fn=lambda model, x: model(x),
):
    def update(engine, batch):
        optimizer.zero_grad()
        model.train()
        x, y = prepare_batch(batch, device=device, non_blocking=non_blocking)
        y_pred = model_transform(model_fn(model, x))
        loss = loss_fn(y_pred, y)
        loss.backward()
        optimizer.step()
        return output_transform(x, y, y_pred, loss)

    return Engine(update)


def create_supervised_evaluator(
    model,
    metrics=None,
    device=None,
    non_blocking=False,
    prepare_batch=_prepared,
    model_transform=lambda output: output,
    output_transform=lambda x, y, y_pred: (y_pred, y),
    amp_mode=None,
    model_fn=lambda model, x: model(x),
):
    def infer(engine, batch):
        model.eval()
        with torch.no_grad():
            x, y = prepare_batch(batch, device=device, non_blocking=non_blocking)
            y_pred = model_transform(model_fn(model, x))
            return output_transform(x, y, y_pred)

    return Engine(infer)
