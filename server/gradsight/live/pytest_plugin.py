"""`pytest --gradsight`: tests that fail by autograd say which lines did it; on request untrained parameters fail a test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from gradsight.live.watching import Watching

_MISSING = "every parameter must get a gradient"


def pytest_addoption(parser: Any) -> None:
    group = parser.getgroup("gradsight", "where gradients break")
    group.addoption(
        "--gradsight", action="store_true", help="add to a failing test the lines that broke its gradients"
    )
    group.addoption(
        "--gradsight-untrained",
        action="store_true",
        help="also fail a test whose backward or optimizer steps leave parameters without gradient (implies --gradsight)",
    )


def pytest_configure(config: Any) -> None:
    config.addinivalue_line(
        "markers",
        "gradsight_untrained: fail this test if a backward or an optimizer step leaves parameters without gradient",
    )
    if config.getoption("--gradsight") or config.getoption("--gradsight-untrained"):
        config.pluginmanager.register(
            GradSightPlugin(config.getoption("--gradsight-untrained")), "gradsight-watch"
        )


class GradSightPlugin:
    """Watches each test by itself."""

    def __init__(self, untrained_fails: bool) -> None:
        self.untrained_fails = untrained_fails

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: Any) -> Iterator[None]:
        try:
            from gradsight.agent import sites
            from gradsight.agent.applied_modules import AppliedModules
            from gradsight.live import watching
        except ImportError:
            # No torch in this environment: nothing to watch.
            yield
            return
        sites.claim_file(str(item.path))
        watch: Watching = watching.watch(report=False)
        is_asked = self.untrained_fails or bool(item.get_closest_marker("gradsight_untrained"))
        called = AppliedModules() if is_asked else None
        try:
            outcome: Any = yield
            error = outcome.excinfo[1] if outcome.excinfo else None
            if isinstance(error, Exception):
                watch.explain(error)
            elif error is None and called is not None:
                untrained = watch.report().untrained or called.without_gradient()
                if untrained:
                    outcome.force_exception(
                        pytest.fail.Exception("\n".join([_MISSING, *untrained]), pytrace=False)
                    )
        finally:
            watch.stop()
            if called is not None:
                called.stop()
