"""`TrainingArguments`: those that decide when gradients are clipped, applied and cleared."""


class TrainingArguments:
    def __init__(
        self,
        output_dir=None,
        num_train_epochs=3.0,
        max_steps=-1,
        per_device_train_batch_size=8,
        gradient_accumulation_steps=1,
        max_grad_norm=1.0,
        learning_rate=5e-5,
        weight_decay=0.0,
        **options,
    ):
        self.output_dir = output_dir
        self.num_train_epochs = num_train_epochs
        self.max_steps = max_steps
        self.per_device_train_batch_size = per_device_train_batch_size
        self.gradient_accumulation_steps = gradient_accumulation_steps
        self.max_grad_norm = max_grad_norm
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.n_gpu = 1
        for name, value in options.items():
            setattr(self, name, value)


class Seq2SeqTrainingArguments(TrainingArguments):
    pass
