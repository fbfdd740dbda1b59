"""Wrappers around an environment."""

from gymnasium import Wrapper


class Wrapped(Wrapper):
    def __init__(self, env, *args, **kwargs):
        super().__init__(env)


RecordEpisodeStatistics = RecordVideo = NormalizeObservation = NormalizeReward = FrameStack = Wrapped
TransformObservation = TransformReward = ClipAction = ResizeObservation = GrayScaleObservation = Wrapped
FlattenObservation = FrameStackObservation = GrayscaleObservation = TimeLimit = Wrapped
