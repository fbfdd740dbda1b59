"""An error where it happened: the frames of its traceback and the user's stack."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType
from typing import Any

from gradsight.agent.caught import text_of_error
from gradsight.agent.sites import FrameKey, SourceRange, Stack, is_user_file, place_of


@dataclass(frozen=True)
class Scene:
    """An error where it happened: the frames of its traceback, outermost first, and the user's stack."""

    error: BaseException
    message: str
    frames: tuple[FrameType, ...]
    stack: Stack

    @property
    def place(self) -> SourceRange:
        return place_of(self.stack[0])

    def local(self, function: str, *names: str) -> Any:
        """A local variable of the innermost frame of this function."""
        for frame in reversed(self.frames):
            if frame.f_code.co_name == function and not is_user_file(frame.f_code.co_filename):
                for name in names:
                    if name in frame.f_locals:
                        return frame.f_locals[name]
        return None


def scene_of(error: BaseException, running: FrameType | None = None) -> Scene:
    """The scene of an error, from its traceback; of one that is still on its way up, `running` is who has it now."""
    frames: list[FrameType] = []
    keys: list[FrameKey] = []
    while running is not None:
        frames.insert(0, running)
        if is_user_file(running.f_code.co_filename):
            keys.insert(0, FrameKey(running.f_code, running.f_lasti))
        running = running.f_back
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        if is_user_file(trace.tb_frame.f_code.co_filename):
            keys.append(FrameKey(trace.tb_frame.f_code, trace.tb_lasti))
        trace = trace.tb_next
    return Scene(error, text_of_error(error), tuple(frames), tuple(reversed(keys)))
