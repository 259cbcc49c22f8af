"""Hugging Face datasets: a table of paths with an Image column, the baseline's recipe as its transform, in torch's loader."""

import functools

from peers import SAME_CODE, Peer, on


def transformed(recipe, rows):
    return {"image": [recipe(image.convert("RGB")) for image in rows["image"]], "label": rows["label"]}


def tokenized(vocabulary, rows):
    import torch
    from torch_datasets import tokens

    return {"tokens": [torch.tensor(tokens(line, vocabulary)) for line in rows["line"]]}


def table(work):
    import datasets
    from torch_datasets import recipe

    if work.workload.name == "text":
        return datasets.Dataset.from_dict({"line": work.lines}).with_transform(functools.partial(tokenized, work.vocabulary))
    files, labels = zip(*work.photographs, strict=True)
    images = datasets.Dataset.from_dict({"image": list(files), "label": list(labels)}).cast_column("image", datasets.Image())
    return images.with_transform(functools.partial(transformed, recipe(work)))


def batches(work):
    from torch.utils.data import DataLoader

    workers = 0 if work.workload.name == "text" else work.workers
    for batch in DataLoader(table(work), batch_size=work.batch_size, num_workers=workers, drop_last=True):
        yield tuple(batch.values()) if "image" in batch else batch["tokens"]


PEERS = [Peer("Hugging Face datasets", on("photographs bytes contrastive text", batches), SAME_CODE, ("datasets",))]
