"""TRL: a trainer with a loss of its own calls it where the Trainer of transformers does."""

import tempfile

import torch
from parts import RecordedSchedule, RecordedSGD, carries_graph
from recorder import log
from small_language import rows, tokenizer_and_model
from trl import SFTConfig, SFTTrainer


class Own(SFTTrainer):
    def training_step(self, *args, **kwargs):
        log("training_step")
        return super().training_step(*args, **kwargs)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        log("compute_loss")
        outputs = model(input_ids=inputs["input_ids"], labels=inputs["labels"])
        log(
            f"loss: {carries_graph(outputs.loss)}, {carries_graph(outputs.logits)}, training: {model.training}"
        )
        return (outputs.loss, outputs) if return_outputs else outputs.loss


def main():
    for rounds in (1, 2):
        tokenizer, model = tokenizer_and_model()
        optimizer = RecordedSGD(model.parameters(), lr=0.1)
        with tempfile.TemporaryDirectory() as folder:
            args = SFTConfig(
                output_dir=folder,
                num_train_epochs=2,
                per_device_train_batch_size=2,
                gradient_accumulation_steps=rounds,
                report_to=[],
                use_cpu=True,
                bf16=False,
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
                max_length=8,
                gradient_checkpointing=False,
            )
            trainer = Own(
                model=model,
                args=args,
                train_dataset=rows(),
                processing_class=tokenizer,
                optimizers=(optimizer, RecordedSchedule(optimizer)),
            )
            trainer.train()
            log(f"trained: {isinstance(trainer.model, torch.nn.Module)}")
