"""A Trainer with a loss of its own, and a callback, with one and with two batches for each step."""

import tempfile

import torch
import torch.nn.functional as F
from parts import Net, RecordedSchedule, RecordedSGD
from recorder import log
from transformers import Trainer, TrainerCallback, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return {"x": torch.ones(2), "labels": torch.ones(1)}


class Wrapped(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()

    def forward(self, x, labels=None):
        return {"logits": self.net(x)}

    def zero_grad(self, set_to_none=True):
        log("model.zero_grad")
        super().zero_grad(set_to_none)


class Own(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        log("compute_loss")
        outputs = model(**inputs)
        loss = F.mse_loss(outputs["logits"], inputs["labels"])
        return (loss, outputs) if return_outputs else loss

    def training_step(self, *args, **kwargs):
        log("training_step")
        return super().training_step(*args, **kwargs)


class Talking(TrainerCallback):
    def on_step_begin(self, args, state, control, **kwargs):
        log("on_step_begin")

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        log("on_pre_optimizer_step")

    def on_optimizer_step(self, args, state, control, **kwargs):
        log("on_optimizer_step")

    def on_substep_end(self, args, state, control, **kwargs):
        log("on_substep_end")

    def on_step_end(self, args, state, control, **kwargs):
        log("on_step_end")

    def on_epoch_end(self, args, state, control, **kwargs):
        log("on_epoch_end")


def main():
    for rounds in (1, 2):
        with tempfile.TemporaryDirectory() as folder:
            net = Wrapped()
            optimizer = RecordedSGD(net.parameters(), lr=0.1)
            args = TrainingArguments(
                output_dir=folder,
                num_train_epochs=2,
                per_device_train_batch_size=2,
                gradient_accumulation_steps=rounds,
                report_to=[],
                use_cpu=True,
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                remove_unused_columns=False,
            )
            trainer = Own(
                model=net,
                args=args,
                train_dataset=Rows(),
                callbacks=[Talking()],
                optimizers=(optimizer, RecordedSchedule(optimizer)),
            )
            trainer.train()
