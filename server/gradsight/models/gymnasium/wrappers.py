"""Wrappers around an environment."""

from gymnasium import Wrapper


class _Wrapped(Wrapper):
    def __init__(self, env, *args, **kwargs):
        super().__init__(env)


RecordEpisodeStatistics = RecordVideo = NormalizeObservation = NormalizeReward = _Wrapped
TransformObservation = TransformReward = ClipAction = ResizeObservation = _Wrapped
FlattenObservation = FrameStackObservation = GrayscaleObservation = TimeLimit = _Wrapped
