"""What entries stand on, and what must be there above."""

from __future__ import annotations

import ast
from abc import ABCMeta, abstractmethod

from gradsight.interp.libraries.transforms import Transforms
from gradsight.interp.path_state import PathState
from gradsight.interp.python.contexts import Contexts
from gradsight.interp.tensors.checkpoints import Checkpoints
from gradsight.interp.tensors.tensor_api import TensorApi


class EntryFloor(metaclass=ABCMeta):
    """The lowest class of the floor: holds the path, and the other floors once they are joined."""

    language: Contexts
    autograd: TensorApi
    nn: Checkpoints
    libraries: Transforms

    def __init__(self, path: PathState) -> None:
        self.path = path

    # What a class needs of one that stands above it on the same floor.

    @abstractmethod
    def scopes_of(self, key: str) -> list[ast.AST]: ...
