"""transformers and TRL: the Trainer's own loop, pretrained models in loops of the user."""

from __future__ import annotations

import pytest

from tests.models.checking import check

TRAINER = """
from BASE

class Own(NAME):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        labels = inputs["labels"]
        outputs = model(**inputs)
        out = outputs.logits.sigmoid()
        WRITE
        loss = F.mse_loss(out, labels)
        return (loss, outputs) if return_outputs else loss
"""


@pytest.mark.parametrize(
    ("base", "name"),
    [
        ("transformers import Trainer", "Trainer"),
        ("transformers import Seq2SeqTrainer", "Seq2SeqTrainer"),
        ("trl import SFTTrainer", "SFTTrainer"),
        ("trl import DPOTrainer", "DPOTrainer"),
    ],
)
def test_loss_of_a_trainer_that_nothing_starts_is_differentiated(base: str, name: str) -> None:
    program = TRAINER.replace("BASE", base).replace("NAME", name)
    check(program.replace("WRITE", "out *= 2  # GS101"))
    check(program.replace("WRITE", "out = out * 2"))


def test_loss_that_is_cut_is_told() -> None:
    check("""
        from transformers import Trainer

        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
                outputs = model(**inputs)
                loss = F.cross_entropy(outputs["logits"], inputs["labels"]).detach()  # GS203
                return (loss, outputs) if return_outputs else loss
    """)


def test_penalty_without_a_graph_beside_the_loss_is_fine() -> None:
    check("""
        from transformers import Trainer

        class Own(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
                outputs = model(**inputs)
                loss = F.cross_entropy(outputs["logits"], inputs["labels"])
                loss = loss * (1 + outputs["logits"].detach().softmax(-1).amax(-1).mean())
                return (loss, outputs) if return_outputs else loss
    """)


def test_training_step_that_returns_its_graph_feeds_the_running_loss() -> None:
    program = """
        from transformers import Trainer

        class Own(Trainer):
            def training_step(self, model, inputs, num_items_in_batch=None):
                model.train()
                loss = self.compute_loss(model, inputs)
                self.accelerator.backward(loss)
                return loss  # GS404
    """
    check(program)
    check(program.replace("return loss  # GS404", "return loss.detach()"))


LOOP = """
from transformers import AutoModelForSequenceClassification, get_linear_schedule_with_warmup

def train(loader):
    model = AutoModelForSequenceClassification.from_pretrained("bert-base-uncased", num_labels=2)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-5)
    schedule = get_linear_schedule_with_warmup(opt, 10, 100)
    model.train()
    for batch in loader:
        outputs = model(**batch)
        loss = outputs.loss
        CLEAR
        loss.backward()MARK
        opt.step()
        schedule.step()

train(torch.utils.data.DataLoader(load_rows()))
"""


def test_pretrained_model_is_trained_by_a_loop() -> None:
    check(LOOP.replace("CLEAR", "pass").replace("MARK", "  # GS501"))
    check(LOOP.replace("CLEAR", "opt.zero_grad()").replace("MARK", ""))


@pytest.mark.parametrize(
    "init",
    [
        "def __init__(self, own, **kwargs):\n        super().__init__(**kwargs)\n        self.own = own",
        "def __init__(self, *args, **kwargs):\n        super().__init__(*args, **kwargs)",
        "def __init__(self, model, args):\n        super().__init__(model=model, args=args)",
    ],
)
@pytest.mark.parametrize(
    ("returned", "mark"), [("loss.item()", "  # GS202"), ("loss.detach()", "  # GS203"), ("loss", "")]
)
def test_which_model_a_trainer_gets_is_not_known(init: str, returned: str, mark: str) -> None:
    """It need not be one of the library's: a user's own returns what it likes."""
    check(
        f"""
from transformers import Trainer

class Own(Trainer):
    {init}

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        _, _, values = model(**inputs, output_hidden_states=True)
        chosen, rejected = torch.split(values, 4, dim=0)
        loss = -F.logsigmoid(chosen - rejected).mean()
        return {returned}{mark}
"""
    )
