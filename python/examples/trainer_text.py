"""Hugging Face's Trainer on masked text, with the data set's map and a padding collator: python trainer_text.py LINES.jsonl"""

import random
import sys
import tempfile

import torch
from datasets import load_dataset
from transformers import BertConfig, BertForMaskedLM, Trainer, TrainingArguments, set_seed

MASK, PAD, LENGTH = 1, 0, 24


def tokenize(examples):
    """A byte is a token."""
    return {"input_ids": [[2 + byte for byte in text.encode()[:LENGTH]] for text in examples["text"]]}


class MaskingCollator:
    """Pads to the longest of the batch, and hides one token in seven."""

    def __call__(self, examples):
        longest = max(len(example["input_ids"]) for example in examples)
        tokens = torch.tensor([example["input_ids"] + [PAD] * (longest - len(example["input_ids"])) for example in examples])
        chosen = (torch.rand(tokens.shape) < 0.15) & (tokens != PAD)
        chosen[:, random.randrange(longest)] |= tokens[:, 0] != PAD
        return {"input_ids": tokens.masked_fill(chosen, MASK), "attention_mask": (tokens != PAD).long(), "labels": tokens.masked_fill(~chosen, -100)}


class PrintingTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
        print(f"step {self.state.global_step} loss {loss.item()}")
        return (loss, outputs) if return_outputs else loss


def main():
    set_seed(21)
    with tempfile.TemporaryDirectory() as folder:
        dataset = load_dataset("json", data_files=sys.argv[1], split="train", cache_dir=folder)
        dataset = dataset.map(tokenize, batched=True, remove_columns=dataset.column_names)
        config = BertConfig(vocab_size=258, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, max_position_embeddings=LENGTH)
        arguments = TrainingArguments(output_dir=folder, use_cpu=True, max_steps=12, per_device_train_batch_size=4, gradient_accumulation_steps=2,
                                      dataloader_num_workers=2, dataloader_persistent_workers=True, save_strategy="no", report_to=[],
                                      disable_tqdm=True)  # fmt: skip
        PrintingTrainer(model=BertForMaskedLM(config), args=arguments, train_dataset=dataset, data_collator=MaskingCollator()).train()


if __name__ == "__main__":
    main()
