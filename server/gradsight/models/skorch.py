"""skorch: the net clears, applies the module, asks `get_loss`, calls backward and steps; classes derive from it."""

import torch


class NeuralNet:
    def __init__(self, module, criterion, optimizer=torch.optim.SGD, lr=0.01, max_epochs=10, **kwargs):
        self.module = module
        self.criterion = criterion
        self.optimizer = optimizer
        self.lr = lr
        self.max_epochs = max_epochs

    def __gradsight_driver__(self):
        self.fit(torch.utils.data.DataLoader([]))

    def initialize(self):
        self.initialize_criterion()
        self.initialize_module()
        self.initialize_optimizer()
        return self

    def initialize_module(self):
        self.module_ = self.module() if isinstance(self.module, type) else self.module
        return self

    def initialize_criterion(self):
        self.criterion_ = self.criterion() if isinstance(self.criterion, type) else self.criterion
        return self

    def initialize_optimizer(self, triggered_directly=None):
        self.optimizer_ = self.optimizer(self.module_.parameters(), lr=self.lr)
        return self

    def infer(self, x, **fit_params):
        return self.module_(x, **fit_params)

    def get_loss(self, y_pred, y_true, X=None, training=False):
        return self.criterion_(y_pred, y_true)

    def train_step_single(self, batch, **fit_params):
        self.module_.train()
        inputs, targets = batch
        y_pred = self.infer(inputs, **fit_params)
        loss = self.get_loss(y_pred, targets, X=inputs, training=True)
        loss.backward()
        return {"loss": loss, "y_pred": y_pred}

    def train_step(self, batch, **fit_params):
        self.optimizer_.zero_grad()
        step = self.train_step_single(batch, **fit_params)
        self.optimizer_.step()
        return step

    def validation_step(self, batch, **fit_params):
        self.module_.eval()
        with torch.no_grad():
            inputs, targets = batch
            y_pred = self.infer(inputs, **fit_params)
            loss = self.get_loss(y_pred, targets, X=inputs, training=False)
        return {"loss": loss, "y_pred": y_pred}

    def fit_loop(self, X, y=None, epochs=None, **fit_params):
        for batch in X:
            self.train_step(batch, **fit_params)["loss"].item()
        return self

    def partial_fit(self, X, y=None, classes=None, **fit_params):
        return self.fit_loop(X, y, **fit_params)

    def fit(self, X, y=None, **fit_params):
        self.initialize()
        return self.partial_fit(X, y, **fit_params)


class NeuralNetClassifier(NeuralNet):
    def __init__(self, module, *args, criterion=torch.nn.NLLLoss, **kwargs):
        super().__init__(module, criterion, *args, **kwargs)


class NeuralNetRegressor(NeuralNet):
    def __init__(self, module, *args, criterion=torch.nn.MSELoss, **kwargs):
        super().__init__(module, criterion, *args, **kwargs)
