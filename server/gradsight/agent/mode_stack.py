"""The stack of torch's function modes, on which a watch stands below those of the program.

Modes are entered and left in blocks: whoever leaves takes the topmost one away.  A watch begins and ends in the middle of
such blocks, so its mode must not be the topmost when one of them ends.  Only the default device stands below it: torch
wants to find that at the bottom.
"""

from __future__ import annotations

from collections.abc import Callable

from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack, _pop_mode, _push_mode
from torch.utils._device import DeviceContext


def is_entered(mode: TorchFunctionMode) -> bool:
    """Whether a mode is on the stack of this thread."""
    return any(each is mode for each in _get_current_function_mode_stack())


def enter_below(mode: TorchFunctionMode) -> None:
    """Puts a mode below all others of this thread, once."""
    if is_entered(mode):
        return
    above = _taken_off(_is_no_device)
    for each in (mode, *reversed(above)):
        _push_mode(each)


def leave(mode: TorchFunctionMode) -> bool:
    """Takes a mode away wherever it stands in this thread; whether it was there."""
    if not is_entered(mode):
        return False
    above = _taken_off(lambda each: each is not mode)
    _pop_mode()
    for each in reversed(above):
        _push_mode(each)
    return True


def _taken_off(wanted: Callable[[TorchFunctionMode], bool]) -> list[TorchFunctionMode]:
    """Takes modes off the stack as long as they are wanted, the topmost first."""
    taken: list[TorchFunctionMode] = []
    for mode in reversed(_get_current_function_mode_stack()):
        if not wanted(mode):
            break
        taken.append(_pop_mode())
    return taken


def _is_no_device(mode: TorchFunctionMode) -> bool:
    return not isinstance(mode, DeviceContext)


class OwnPause:
    """Takes one mode away while a library step runs: its writes are noted as a whole, before and after.

    The modes of the program go on.  A step that raises leaves the pause on; the next step or backward ends it.
    """

    def __init__(self, mode: TorchFunctionMode) -> None:
        self._mode = mode
        self._is_on = False

    def begin(self) -> None:
        """The mode does not listen from here on."""
        self._is_on = leave(self._mode)

    def end(self) -> None:
        """The mode listens again."""
        if self._is_on:
            self._is_on = False
            enter_below(self._mode)
