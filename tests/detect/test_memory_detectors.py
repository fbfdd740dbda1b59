"""The detectors of memory that has two meanings, each by itself."""

from __future__ import annotations

from gradsight.detect.changed_data import ChangedData
from gradsight.detect.changed_inputs import ChangedInputs
from gradsight.detect.kept_features import KeptFeatures
from gradsight.detect.module_aliases import ModuleAliases
from gradsight.detect.place_aliases import PlaceAliases
from gradsight.model.tensors import Tensor
from gradsight.model.trace import Assigned, ItemRead, NameRead, Stepped, Used, Wrote
from gradsight.model.values import ClassValue, Instance, Layer, ModuleState, Seq
from tests.detect.staging import Stage, function_of

WRITTEN = "alias-read-after-write"


def wrote(stage: Stage, tensor: Tensor, piece: str, op: str, *others: Tensor) -> Wrote:
    write = stage.written(tensor, piece, op)
    return Wrote(tensor, op, write.site, list(others), None, write)


def fetched(is_copied: bool) -> list[tuple[str, int]]:
    stage = Stage("def __getitem__(self, i):\n    x = self.data[i]\n    x -= 3\n    return x")
    data = stage.tensor("self.data[i]", "data", requires_grad=False)
    x = stage.tensor("self.data[i]", "x", requires_grad=False)
    if not is_copied:
        x.storage, x.counter = data.storage, data.counter
    function = function_of(stage, "__getitem__")
    owner = Instance(ClassValue("Images", [], {"__len__": function}, ""), None)
    owner.attributes["data"] = data
    stage.frame.function, stage.frame.receiver = function, owner
    return stage.hears(ChangedData(stage, stage.claims), wrote(stage, x, "x -= 3", "sub_"))


def test_an_item_that_is_changed_where_a_dataset_stores_it_is_told() -> None:
    assert fetched(is_copied=False) == [(WRITTEN, 3)]


def test_a_copy_of_an_item_may_be_changed() -> None:
    assert fetched(is_copied=True) == []


def given_and_read(text: str, reading: str) -> list[tuple[str, int]]:
    stage = Stage(text)
    x = stage.tensor("x", "x", "mul")
    stage.names["x"] = x
    detector = ChangedInputs(stage, stage.claims)
    stage.hears(detector, wrote(stage, x, "normalize(x)", "div_"))
    return stage.hears(detector, NameRead("x", stage.find(reading)))


def test_an_argument_that_a_call_changed_is_told_when_it_is_read_again() -> None:
    assert given_and_read("y = normalize(x)\nz = x + 1", "x + 1") == [(WRITTEN, 1)]


def test_a_call_for_its_effect_alone_says_what_it_does() -> None:
    assert given_and_read("normalize(x)\nz = x + 1", "x + 1") == []


def stored_and_written(copied: bool) -> list[tuple[str, int]]:
    stage = Stage("kept.append(h)\nrelu(h, inplace=True)\nkept[0]")
    h = stage.tensor("h", "h", "linear")
    kept = Seq("list", [h])
    if copied:
        kept.items[0] = stage.tensor("h", "h", "clone")
    h.storage.stores = [(id(kept), 0, stage.at("kept.append(h)"))]
    write = stage.written(h, "relu(h, inplace=True)", "relu_")
    write.epoch = 1
    return stage.hears(
        KeptFeatures(stage, stage.claims), ItemRead(kept, 0, kept.items[0], stage.find("kept[0]"))
    )


def test_an_entry_that_a_layer_overwrote_is_told_at_the_layer() -> None:
    assert stored_and_written(copied=False) == [(WRITTEN, 2)]


def test_a_copied_entry_stays_as_it_was() -> None:
    assert stored_and_written(copied=True) == []


def place_and_name(read: str) -> list[tuple[str, int]]:
    stage = Stage(f"z = stats['mu']\nz += noise\nout = {read}")
    mu = stage.tensor("stats['mu']", "mu", "linear")
    stage.names["z"] = mu
    detector = PlaceAliases(stage, stage.claims)
    stage.hears(
        detector, Assigned(stage.find("z = stats['mu']"), mu.serial), wrote(stage, mu, "z += noise", "add_")
    )
    return stage.hears(detector, Used({"self": mu, "other": mu}, stage.find(read)))


def test_a_place_that_is_read_beside_its_changed_name_is_told_at_the_write() -> None:
    assert place_and_name("z - stats['mu']") == [(WRITTEN, 2)]


def test_a_state_that_is_advanced_under_a_name_is_not_told() -> None:
    assert place_and_name("z - other") == []


def second_name(name: str) -> list[tuple[str, int]]:
    stage = Stage(f"{name} = model\nopt.step()\nsave({name})")
    weight = stage.tensor("model", "weight", is_parameter=True)
    model = Layer("nn.Linear", {}, None)
    model.module, model.attributes = ModuleState(), {"weight": weight}
    stage.names.update({"model": model, name: model})
    optimizer = stage.optimizer("opt", weight)
    detector = ModuleAliases(stage, stage.claims)
    facts = [
        Assigned(stage.find(f"{name} = model"), 99),
        Stepped(optimizer, stage.at("opt.step()")),
        NameRead(name, stage.find(f"save({name})")),
    ]
    return stage.hears(detector, *facts)


def test_a_best_model_that_is_the_model_itself_is_told() -> None:
    assert second_name("best_model") == [("model-not-copied", 1)]


def test_another_word_for_the_model_is_not_told() -> None:
    assert second_name("network") == []
