"""The capabilities of real clients, played by pytest-lsp: each gets diagnostics, hover and a fix in its own way."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator

import pytest
import pytest_lsp
from lsprotocol import types
from pytest_lsp import ClientServerConfig, LanguageClient, client_capabilities

from tests.lsp.programs import EMOJI

CLIENTS = [
    "emacs",
    "neovim@v0.7.0",
    "neovim@v0.10.0",
    "neovim@v0.11.0",
    "visual-studio-code",
]
URI = "file:///p/train.py"
COLUMNS = {"utf-8": 13, "utf-16": 10, "utf-32": 9}


@pytest_lsp.fixture(
    params=CLIENTS, config=ClientServerConfig(server_command=[sys.executable, "-m", "gradsight.lsp"])
)
async def client(request: pytest.FixtureRequest, lsp_client: LanguageClient) -> AsyncIterator[None]:
    """A client with the capabilities of a real one."""
    capabilities = client_capabilities(request.param)
    lsp_client.feature(types.CLIENT_REGISTER_CAPABILITY)(lambda params: None)
    result = await lsp_client.initialize_session(
        types.InitializeParams(capabilities=capabilities, initialization_options={"debounce": 0})
    )
    chosen = result.capabilities.position_encoding
    lsp_client.encoding = str(getattr(chosen, "value", chosen))
    lsp_client.pulls = result.capabilities.diagnostic_provider is not None
    yield
    await lsp_client.shutdown_session()


@pytest.mark.asyncio
@pytest.mark.filterwarnings("error::pytest_lsp.LspSpecificationWarning")
async def test_a_client_is_served_in_its_own_way(client: LanguageClient) -> None:
    item = types.TextDocumentItem(URI, "python", 1, EMOJI)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    found = await diagnostics(client)
    assert (found.code, found.range.start) == ("GS101", types.Position(4, COLUMNS[client.encoding]))
    identifier = types.TextDocumentIdentifier(URI)
    said = await client.text_document_hover_async(types.HoverParams(identifier, found.range.start))
    assert said is not None
    assert isinstance(said.contents, types.MarkupContent)
    assert "GS101" in said.contents.value
    actions = await client.text_document_code_action_async(
        types.CodeActionParams(identifier, found.range, types.CodeActionContext([found]))
    )
    [action] = [each for each in actions or [] if each.title == "GradSight: replace with `y = y * 3`"]
    assert isinstance(action, types.CodeAction)
    if action.edit is None:
        action = await client.code_action_resolve_async(action)
    assert edit_of(action).new_text == "= y *"
    assert edit_of(action).range.start.character == COLUMNS[client.encoding] + 2


async def diagnostics(client: LanguageClient) -> types.Diagnostic:
    """The one diagnostic of the document, pushed or pulled."""
    if client.pulls:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(URI))
        report = await client.text_document_diagnostic_async(params)
        assert isinstance(report, types.RelatedFullDocumentDiagnosticReport)
        assert URI not in client.diagnostics
        return report.items[0]
    await client.wait_for_notification(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    return client.diagnostics[URI][0]


def edit_of(action: types.CodeAction) -> types.TextEdit:
    """The only text edit of an action."""
    assert action.edit is not None
    if action.edit.changes:
        [edit] = action.edit.changes[URI]
    else:
        [change] = action.edit.document_changes or []
        assert isinstance(change, types.TextDocumentEdit)
        [edit] = change.edits
    assert isinstance(edit, types.TextEdit)
    return edit
