"""Metrics watch an engine: they take what its function returns out of the graph."""


class Metric:
    def __init__(self, *settings, **options):
        pass

    def attach(self, engine, name=None, usage=None):
        pass

    def detach(self, engine, usage=None):
        pass


class Loss(Metric):
    pass


class RunningAverage(Metric):
    pass


class Average(Metric):
    pass


class Accuracy(Metric):
    pass


class TopKCategoricalAccuracy(Metric):
    pass


class Precision(Metric):
    pass


class Recall(Metric):
    pass


class Fbeta(Metric):
    pass


class ConfusionMatrix(Metric):
    pass


class MeanSquaredError(Metric):
    pass


class MeanAbsoluteError(Metric):
    pass


class EpochMetric(Metric):
    pass


class MetricsLambda(Metric):
    pass
