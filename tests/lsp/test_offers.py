"""What is shown besides findings: hints behind names and lenses above functions, where the user wants them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from gradsight.lsp.actions import code_actions, resolve
from gradsight.lsp.hints import inlay_hints
from gradsight.lsp.lenses import LensCommand, code_lenses, is_worth_running
from gradsight.lsp.server import GradSightServer
from gradsight.lsp.wire_types import types
from gradsight.session.options import FolderOptions, Options
from gradsight.session.session import EditorSession

URI = "file:///o/a.py"
TEXT = """import torch

x = torch.ones(3, requires_grad=True)
é = x.exp()


def step(model):
    return model


async def later():
    pass


class Net:
    def forward(self, x):
        return x


if __name__ == "__main__":
    step(None)

# %% a cell
  # %% no cell
"""


def test_hints_are_off_unless_the_user_wants_them() -> None:
    assert hints(Options()) == []


def test_a_hint_stands_behind_the_name_that_is_bound() -> None:
    found = hints(Options(inlay_hints=True))
    assert [(each.position.line, each.position.character, parts(each)) for each in found] == [
        (2, 1, [("leaf", 2)]),
        (3, 1, [("grad_fn=Exp", 3)]),
    ]


def test_the_parts_of_a_hint_lead_to_where_the_tensor_was_made_and_last_written() -> None:
    text = "import torch\n\nx = torch.ones(3, requires_grad=True)\ny = x * 2\ny += 1\nz = y\n"
    found = {each.position.line: parts(each) for each in hints(Options(inlay_hints=True), text)}
    assert found[5] == [("grad_fn=Add", 4), (" v1", 4)]


def test_in_our_own_editor_the_parts_of_a_hint_are_commands() -> None:
    """VS Code goes to the definition of what stands at a location, which may be another line."""

    async def ask(server: GradSightServer) -> Any:
        server.client = replace(server.client, shows_pages=True)
        whole = types.Range(types.Position(0, 0), types.Position(99, 0))
        return await inlay_hints(server, types.InlayHintParams(types.TextDocumentIdentifier(URI), whole))

    leaf, *_ = run(ask, Options(inlay_hints=True))
    [part] = leaf.label
    assert part.location is None
    assert (part.command.command, part.command.arguments) == ("gradsight.showLine", [URI, 2])


def parts(hint: types.InlayHint) -> list[tuple[str, int | None]]:
    """The words of a hint, each with the line that it leads to."""
    assert not isinstance(hint.label, str)
    return [
        (part.value, part.location.range.start.line if part.location is not None else None)
        for part in hint.label
    ]


def test_a_tensor_name_is_explained_by_what_the_engine_knows() -> None:
    from gradsight.lsp.hover import hover

    async def ask(server: GradSightServer) -> Any:
        document = server.session.open.documents[URI]
        await server.session.current(document)
        place = types.HoverParams(types.TextDocumentIdentifier(URI), types.Position(2, 0))
        return await hover(server, place)

    assert "a leaf, requires grad" in run(ask, Options()).contents.value


def test_nothing_can_be_run_without_a_command() -> None:
    assert lenses([]) == []


def test_a_command_is_offered_above_the_main_block_and_not_above_functions_that_show_nothing() -> None:
    [found] = lenses([LensCommand("Run", "gradsight.probe")])
    assert found.range.start.line + 1 == 20
    assert found.command is not None
    assert (found.command.title, found.command.arguments) == ("Run", [URI, 19])


def test_a_lens_has_a_sign_in_our_own_editor_only() -> None:
    async def ask(server: GradSightServer) -> Any:
        server.client = replace(server.client, shows_pages=True)
        server.lens_commands = [LensCommand("Run", "gradsight.probe")]
        return await code_lenses(server, types.CodeLensParams(types.TextDocumentIdentifier(URI)))

    [found] = run(ask, Options())
    assert found.command.title.split() == ["$(beaker)", "Run"]


def test_a_function_is_worth_running_where_it_calls_backward_or_has_a_finding() -> None:
    text = "def train():\n    loss.backward()\n\ndef helper():\n    return 1\n"
    assert is_worth_running(text, 0, 1, ())
    assert not is_worth_running(text, text.index("def helper"), 4, ())
    assert is_worth_running(text, text.index("def helper"), 4, {5})


def test_a_command_may_be_for_the_main_block_only() -> None:
    found = lenses([LensCommand("Run", "gradsight.run", ("main",))])
    assert [each.range.start.line + 1 for each in found] == [20]


def test_a_command_may_be_for_cells() -> None:
    [found] = lenses([LensCommand("Run Cell and Check Gradients", "gradsight.probeCell", ("cell",))])
    assert (found.range.start.line + 1, found.range.start.character, found.range.end.character) == (23, 0, 4)


def test_lenses_can_be_switched_off() -> None:
    assert lenses([LensCommand("Probe", "gradsight.probe")], Options(code_lens=False)) == []


HAZARD = TEXT.replace("é = x.exp()\n", "é = x.exp()\né *= 2\né.sum().backward()\n")


def test_the_edit_of_a_chosen_action_is_the_one_that_was_worked_out_for_the_menu(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from gradsight import fixing

    asked: list[str] = []
    worked_out = fixing.fixes_for

    def counted(source: Any, finding: Any, *args: Any, **options: Any) -> Any:
        asked.append(finding.code)
        return worked_out(source, finding, *args, **options)

    monkeypatch.setattr(fixing, "fixes_for", counted)

    async def ask(server: GradSightServer) -> Any:
        server.client = replace(server.client, takes_action_literals=True, resolves_edits=True)
        here = types.Range(types.Position(4, 0), types.Position(4, 0))
        context = types.CodeActionContext([], only=[types.CodeActionKind.QuickFix])
        menu = await code_actions(
            server, types.CodeActionParams(types.TextDocumentIdentifier(URI), here, context)
        )
        assert isinstance(menu[0], types.CodeAction)
        lines, counts = [], []
        for text in (HAZARD, "# moved\n" + HAZARD):
            if text != HAZARD:
                server.session.open.documents[URI].replace_text(text)
            chosen = await resolve(server, menu[0])
            assert chosen.edit is not None
            [edits] = (chosen.edit.changes or {}).values()
            lines.append(edits[0].range.start.line)
            counts.append(len(asked))
        return lines, counts

    assert run(ask, Options(), HAZARD) == ([4, 5], [1, 2])


def hints(options: Options, text: str | None = None) -> list[types.InlayHint]:
    async def ask(server: GradSightServer) -> Any:
        whole = types.Range(types.Position(0, 0), types.Position(99, 0))
        return await inlay_hints(server, types.InlayHintParams(types.TextDocumentIdentifier(URI), whole))

    return list(run(ask, options) if text is None else run(ask, options, text))


def lenses(commands: list[LensCommand], options: Options | None = None) -> list[types.CodeLens]:
    async def ask(server: GradSightServer) -> Any:
        server.lens_commands = commands
        return await code_lenses(server, types.CodeLensParams(types.TextDocumentIdentifier(URI)))

    return list(run(ask, options or Options()))


def run(ask: Any, options: Options, text: str = TEXT) -> Any:
    """Ask a server that has the text open."""

    async def tell() -> Any:
        server = GradSightServer(EditorSession())
        server.session.use_options(FolderOptions(options))
        server.session.open_document(URI, "/o/a.py", 1, text)
        return await ask(server)

    return asyncio.run(tell())
