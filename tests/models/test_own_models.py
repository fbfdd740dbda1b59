"""Models of the user's own: one file in a folder that pyproject.toml names, and no line elsewhere."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from gradsight.analysis import analyze
from gradsight.cli import main
from gradsight.model import Source
from gradsight.model.report import Report
from gradsight.session.configuration import configuration_for
from gradsight.session.reading import reader
from gradsight.session.workspace import WorkspaceFinder
from tests.interp.checking import announced

ACME = """
import torch


class Task:
    def __gradsight_driver__(self):
        Runner().run(self)

    def work(self, batch):
        pass


class Runner:
    def run(self, task, data=None):
        optimizer = torch.optim.SGD(task.net.parameters(), lr=0.1)
        for batch in data or torch.utils.data.DataLoader([]):
            optimizer.zero_grad()
            value = task.work(batch)
            value.backward()
            optimizer.step()
"""
PROGRAM = """
import torch
from torch import nn
from acme import Runner, Task


class Writing(Task):
    def __init__(self):
        self.net = nn.Linear(4, 1)

    def work(self, batch):
        out = torch.sigmoid(self.net(batch))
        out *= 2  # GS101
        return out.sum()


class Cut(Task):
    def __init__(self):
        self.net = nn.Linear(4, 1)

    def work(self, batch):
        return self.net(batch).sum().detach()  # GS203


class Right(Task):
    def __init__(self):
        self.net = nn.Linear(4, 1)

    def work(self, batch):
        return self.net(batch).sum()
"""


def project(folder: Path, program: str = PROGRAM, **models: str) -> Path:
    (folder / "pyproject.toml").write_text('[tool.gradsight]\nmodels = "known"\n')
    (folder / "known").mkdir()
    for name, text in models.items():
        (folder / "known" / f"{name}.py").write_text(dedent(text))
    path = folder / "train.py"
    path.write_text(dedent(program))
    return path


def report_on(path: Path) -> Report:
    settings = configuration_for(str(path)).settings
    finder = WorkspaceFinder(str(path.parent), reader())
    return analyze(Source(str(path), path.read_text()), settings, finder)


def check(path: Path) -> Report:
    report = report_on(path)
    said = {(finding.span.line, finding.code, False) for finding in report.findings}
    assert said == set(announced(path.read_text().splitlines()))
    assert all(
        place.path == str(path) for finding in report.findings for place in (finding, *finding.related)
    )
    return report


def test_made_up_framework_costs_one_file(tmp_path: Path) -> None:
    check(project(tmp_path, acme=ACME))


def test_without_its_model_the_framework_is_unknown(tmp_path: Path) -> None:
    assert report_on(project(tmp_path)).findings == ()


def test_model_may_be_spread_over_files_that_import_each_other(tmp_path: Path) -> None:
    path = project(tmp_path, acme="from acme_parts import Runner, Task\n", acme_parts=ACME)
    check(path)


def test_module_of_the_workspace_comes_before_a_model(tmp_path: Path) -> None:
    path = project(tmp_path, acme=ACME)
    (tmp_path / "acme.py").write_text("class Task:\n    pass\n\n\nclass Runner:\n    pass\n")
    assert report_on(path).findings == ()


def test_own_model_comes_before_ours(tmp_path: Path) -> None:
    program = """
        import torch
        from torch import nn
        from accelerate import Accelerator

        net = nn.Linear(4, 1)
        Accelerator().backward(net(torch.randn(2, 4)).sum().detach())
    """
    path = project(
        tmp_path, program, accelerate="class Accelerator:\n    def backward(self, loss):\n        pass\n"
    )
    assert report_on(path).findings == ()


def test_files_of_models_are_not_checked_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = "\n\nleaf = torch.ones(2, requires_grad=True)\nleaf += 1\n"
    project(tmp_path, acme=ACME + wrong)
    assert main(["check", "--no-cache", "--format", "github", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "train.py" in told
    assert "acme.py" not in told
    assert main(["check", "--no-cache", str(tmp_path / "known" / "acme.py")]) == 0


def test_syntax_mistake_in_a_model_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, acme="import torch\n\n\ndef broken(:\n    pass\n")
    main(["check", "--no-cache", str(tmp_path)])
    assert "models: known/acme.py, line 4: invalid syntax" in capsys.readouterr().err.replace("\\", "/")


def test_folder_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.gradsight]\nmodels = "nowhere"\n')
    (tmp_path / "train.py").write_text("import torch\n")
    main(["check", "--no-cache", str(tmp_path)])
    assert "models: there is no folder nowhere" in capsys.readouterr().err


def test_unknown_name_in_a_model_is_a_gap_at_the_line_of_the_user(tmp_path: Path) -> None:
    path = project(tmp_path, acme=ACME.replace("value.backward()", "undefined(value)"))
    reasons = {gap.reason for gap in report_on(path).gaps}
    assert "model of acme, line 19: name undefined is not defined here" in reasons


def test_nothing_of_a_model_is_run(tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    path = project(tmp_path, acme=f"open({str(marker)!r}, 'w').write('x')\n{ACME}")
    report_on(path)
    assert not marker.exists()


def test_edit_of_a_model_is_noticed_by_the_kept_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project(tmp_path, acme=ACME)
    assert main(["check", str(tmp_path)]) == 1
    (tmp_path / "known" / "acme.py").write_text("class Task:\n    pass\n\n\nclass Runner:\n    pass\n")
    assert main(["check", str(tmp_path)]) == 0
    capsys.readouterr()
