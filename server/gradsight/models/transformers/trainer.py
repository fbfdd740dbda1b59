"""`Trainer`: `compute_loss` and `training_step` in the order in which `train` calls them."""

import argparse

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

from transformers._given import given_model
from transformers.optimization import get_linear_schedule_with_warmup
from transformers.trainer_callback import TrainerCallback
from transformers.training_args import TrainingArguments


class Trainer:
    def __init__(
        self,
        model=None,
        args=None,
        data_collator=None,
        train_dataset=None,
        eval_dataset=None,
        processing_class=None,
        model_init=None,
        compute_loss_func=None,
        compute_metrics=None,
        callbacks=None,
        optimizers=(None, None),
        **options,
    ):
        if model is None and model_init is not None:
            model = model_init()
        self.model = model
        self.model_wrapped = model
        self.args = args if args is not None else TrainingArguments()
        self.data_collator = data_collator
        self.train_dataset = train_dataset
        self.eval_dataset = eval_dataset
        self.processing_class = processing_class
        self.tokenizer = processing_class
        self.compute_metrics = compute_metrics
        self.compute_loss_func = compute_loss_func
        self.optimizer, self.lr_scheduler = optimizers
        self.accelerator = Accelerator()
        self.state = argparse.Namespace()
        self.control = argparse.Namespace()
        self.is_in_train = False
        self.callbacks = []
        for callback in callbacks or []:
            self.add_callback(callback)

    def __gradsight_driver__(self):
        if self.model is None:
            self.model = self.model_wrapped = given_model()
        self.train()
        self.evaluate()

    # The loop.

    def train(self, resume_from_checkpoint=None, trial=None, ignore_keys_for_eval=None, **options):
        args, model = self.args, self.model
        rounds = args.gradient_accumulation_steps
        loader = self.get_train_dataloader()
        self.create_optimizer_and_scheduler(args.max_steps)
        self.is_in_train = True
        total = torch.tensor(0.0)
        self._notify("on_train_begin")
        model.zero_grad()
        for _epoch in range(2):
            self._notify("on_epoch_begin")
            for step, inputs in enumerate(loader):
                starts = rounds == 1 or step % rounds == 0
                if starts:
                    self._notify("on_step_begin")
                loss = self.training_step(model, inputs, None)
                total = total + loss
                if rounds == 1 or (step + 1) % rounds == 0:
                    if args.max_grad_norm is not None and args.max_grad_norm > 0:
                        self.accelerator.clip_grad_norm_(model.parameters(), args.max_grad_norm)
                    self._notify("on_pre_optimizer_step")
                    self.optimizer.step()
                    self._notify("on_optimizer_step")
                    self.lr_scheduler.step()
                    model.zero_grad()
                    self._notify("on_step_end")
                else:
                    self._notify("on_substep_end")
            self._notify("on_epoch_end")
        self._notify("on_train_end")
        self.is_in_train = False
        return argparse.Namespace()

    def training_step(self, model, inputs, num_items_in_batch=None):
        model.train()
        inputs = self._prepare_inputs(inputs)
        loss = self.compute_loss(model, inputs, num_items_in_batch=num_items_in_batch)
        if self.args.gradient_accumulation_steps != 1:
            loss = loss / self.args.gradient_accumulation_steps
        self.accelerator.backward(loss)
        return loss.detach()

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        outputs = model(**inputs)
        if self.compute_loss_func is not None:
            loss = self.compute_loss_func(outputs, inputs["labels"], num_items_in_batch=num_items_in_batch)
        else:
            loss = outputs["loss"]
        return (loss, outputs) if return_outputs else loss

    def prediction_step(self, model, inputs, prediction_loss_only, ignore_keys=None):
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad():
            loss, outputs = self.compute_loss(model, inputs, return_outputs=True)
        return loss.detach(), outputs["logits"].detach(), inputs["labels"]

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        self.model.eval()
        for inputs in self.get_eval_dataloader(eval_dataset):
            self.prediction_step(self.model, inputs, self.compute_metrics is None)
        self._notify("on_evaluate")
        return {}

    def predict(self, test_dataset, ignore_keys=None, metric_key_prefix="test"):
        self.model.eval()
        for inputs in self.get_eval_dataloader(test_dataset):
            self.prediction_step(self.model, inputs, False)
        return argparse.Namespace()

    # What a user overrides or calls.

    def get_train_dataloader(self):
        return DataLoader(
            self.train_dataset,
            batch_size=self.args.per_device_train_batch_size,
            collate_fn=self.data_collator,
        )

    def get_eval_dataloader(self, eval_dataset=None):
        return DataLoader(eval_dataset if eval_dataset is not None else self.eval_dataset)

    def create_optimizer_and_scheduler(self, num_training_steps):
        self.create_optimizer()
        self.create_scheduler(num_training_steps, self.optimizer)

    def create_optimizer(self, model=None):
        if self.optimizer is None:
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.args.learning_rate)
        return self.optimizer

    def create_scheduler(self, num_training_steps, optimizer=None):
        if self.lr_scheduler is None:
            self.lr_scheduler = get_linear_schedule_with_warmup(
                optimizer or self.optimizer, 0, num_training_steps
            )
        return self.lr_scheduler

    def add_callback(self, callback):
        if not isinstance(callback, TrainerCallback):
            return
        self.callbacks.append(callback)

    def compute_loss_context_manager(self):
        return torch.enable_grad()

    def _prepare_inputs(self, inputs):
        return inputs

    def log(self, logs, start_time=None):
        pass

    def log_metrics(self, split, metrics):
        pass

    def save_metrics(self, split, metrics, combined=True):
        pass

    def save_model(self, output_dir=None, _internal_call=False):
        pass

    def save_state(self):
        pass

    def push_to_hub(self, *args, **kwargs):
        pass

    def is_world_process_zero(self):
        return True

    def _notify(self, event):
        for callback in self.callbacks:
            getattr(callback, event)(
                self.args,
                self.state,
                self.control,
                model=self.model,
                optimizer=self.optimizer,
                lr_scheduler=self.lr_scheduler,
            )


class Seq2SeqTrainer(Trainer):
    pass
