"""Files that are called like a library: inside a package `import lightning` is the library, and elsewhere the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interp.test_projects import check

LIT = """
    import lightning

    class Lit(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = nn.Linear(4, 1)

        def training_step(self, batch, i):
            x, y = batch
            loss = F.mse_loss(self.net(x), y)
            return RETURNED

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())
"""
CUT = LIT.replace("RETURNED", "loss.detach()  # GS203")


def package(folder: Path) -> Path:
    (folder / "tools").mkdir()
    (folder / "tools" / "__init__.py").touch()
    return folder


def test_library_is_no_file_of_its_name_in_the_package_that_imports_it(tmp_path: Path) -> None:
    check(package(tmp_path), tools__lightning=CUT, tools__other=CUT)


def test_module_that_returns_its_loss_beside_a_file_of_the_librarys_name_is_silent(tmp_path: Path) -> None:
    right = LIT.replace("RETURNED", "loss")
    check(package(tmp_path), tools__lightning=right, tools__other=right)


@pytest.mark.parametrize("is_package", [True, False])
def test_file_of_another_name_is_found_beside_its_importer(tmp_path: Path, is_package: bool) -> None:
    if is_package:
        package(tmp_path)
    check(
        tmp_path,
        tools__networks="class Net(nn.Module):\n    def forward(self, x):\n        return torch.sigmoid(x)\n",
        tools__other="""
            from networks import Net

            class Whole(nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net, self.layer = Net(), nn.Linear(4, 4)

                def forward(self, x):
                    out = self.net(self.layer(x))
                    out *= 2  # GS101
                    return out
        """,
    )


def test_file_of_a_librarys_name_in_a_folder_of_scripts_is_what_they_import(tmp_path: Path) -> None:
    check(
        tmp_path,
        einops="class Net(nn.Module):\n    def forward(self, x):\n        return torch.sigmoid(x)\n",
        train="""
            from einops import Net

            net, layer = Net(), nn.Linear(4, 4)
            out = net(layer(torch.randn(2, 4)))
            out *= 2  # GS101
            out.sum().backward()
        """,
    )
