"""Hugging Face's Trainer with a vision transformer: python trainer_images.py FOLDER_OF_JPEGS"""

import sys
import tempfile

import torch
from datasets import load_dataset
from torchvision.transforms import Compose, Normalize, RandomHorizontalFlip, RandomResizedCrop, ToTensor
from transformers import Trainer, TrainingArguments, ViTConfig, ViTForImageClassification, set_seed

transform = Compose([RandomResizedCrop(32), RandomHorizontalFlip(), ToTensor(), Normalize([0.5] * 3, [0.5] * 3)])


def transforms(examples):
    return {"pixel_values": [transform(image.convert("RGB")) for image in examples["image"]], "label": examples["label"]}


def collate_fn(examples):
    return {"pixel_values": torch.stack([example["pixel_values"] for example in examples]), "labels": torch.tensor([example["label"] for example in examples])}


class PrintingTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        loss, outputs = super().compute_loss(model, inputs, return_outputs=True)
        print(f"{'step' if model.training else 'evaluation'} {self.state.global_step} loss {loss.item()}")
        return (loss, outputs) if return_outputs else loss


def main():
    set_seed(11)
    with tempfile.TemporaryDirectory() as folder:
        dataset = load_dataset("imagefolder", data_dir=sys.argv[1], split="train", cache_dir=folder).train_test_split(0.25, seed=4)
        dataset = dataset.with_transform(transforms)
        config = ViTConfig(image_size=32, patch_size=8, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32, num_labels=2)
        arguments = TrainingArguments(output_dir=folder, use_cpu=True, num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=4,
                                      learning_rate=1e-2, dataloader_num_workers=2, remove_unused_columns=False, eval_strategy="epoch", save_strategy="no",
                                      report_to=[], disable_tqdm=True)  # fmt: skip
        trainer = PrintingTrainer(model=ViTForImageClassification(config), args=arguments, data_collator=collate_fn,
                                  train_dataset=dataset["train"], eval_dataset=dataset["test"])  # fmt: skip
        trainer.train()


if __name__ == "__main__":
    main()
