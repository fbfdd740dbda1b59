"""A tokenizer and a language model that are made on the spot, of the libraries or of our models of them."""

from __future__ import annotations

from typing import Any

from recorder import LIBRARIES


def tokenizer_and_model() -> tuple[Any, Any]:
    if not LIBRARIES:
        from transformers import AutoModelForCausalLM

        return None, AutoModelForCausalLM.from_config(None)
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    words = {"[PAD]": 0, "[EOS]": 1, "a": 2, "b": 3, "c": 4}
    plain = Tokenizer(models.WordLevel(words, unk_token="[EOS]"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="[PAD]", eos_token="[EOS]")
    config = GPT2Config(vocab_size=5, n_positions=16, n_embd=8, n_layer=1, n_head=2)
    return tokenizer, GPT2LMHeadModel(config)


def rows() -> Any:
    if not LIBRARIES:
        import torch

        ids = torch.ones(4, dtype=torch.long)
        return [{"input_ids": ids, "labels": torch.zeros(4, dtype=torch.long)} for _ in range(8)]
    from datasets import Dataset

    return Dataset.from_dict({"text": ["a b c a"] * 8})
