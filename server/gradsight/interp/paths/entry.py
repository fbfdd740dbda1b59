"""One entry while it is executed: how its units are run, and what may be assumed about its arguments."""

from __future__ import annotations

import ast

from gradsight.interp.paths.evidence import Evidence
from gradsight.interp.paths.roles import MODULE, PLAIN_KINDS, annotated_role, annotation_text
from gradsight.model.sites import Frame, Unit
from gradsight.model.values import (
    Function,
    Scope,
    Unknown,
    Value,
)


class Entry(Evidence):
    """A machine that knows the workspace and what may be assumed about arguments."""

    def run_script(
        self, units: list[Unit], namespace: dict[str, Value], unit_asked: dict[Unit, set[str]] | None
    ) -> None:
        """Execute the top level, noting what each unit asked for."""
        total: set[str] = set()
        self.script_scope = [
            statement
            for unit in units
            for statement in unit.tree
            if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
        try:
            if unit_asked is None:
                self.run_units(units, namespace)
                return
            scope = Scope(namespace, None)
            frame = Frame("<module>", units[0], namespace, scope, 0, self.path.numbering)
            for unit in units:
                self.path.asked = unit_asked[unit] = set()
                frame.unit = unit
                self.path.frame = frame
                self.execute_unit(unit)
                total |= self.path.asked
        finally:
            self.path.asked = total | self.path.asked

    def missing_argument(self, function: Function, parameter: ast.arg) -> Value:
        annotation = annotation_text(parameter)
        value = Unknown(f"argument {parameter.arg}", PLAIN_KINDS.get(annotation, ""))
        value.is_outside = True
        owner = function.owner
        if owner is not None and owner.kind == "module" and annotated_role(annotation) == MODULE:
            self.make_stand_in(value, MODULE, parameter.arg, parameter)
        return value
