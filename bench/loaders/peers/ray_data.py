"""Ray Data on one machine: the baseline's recipe in tasks, batches by iter_torch_batches."""

import functools
import tempfile

from peers import SAME_CODE, Peer, on


@functools.cache  # once in each of Ray's processes
def recipe_of(workload):
    from torch_datasets import RECIPES

    return RECIPES[workload]()


def photograph(workload, row):
    from PIL import Image

    return {"image": recipe_of(workload)(Image.open(row["path"]).convert("RGB")).numpy(), "label": row["label"]}


def tokenized(vocabulary, row):
    import numpy
    from torch_datasets import tokens

    return {"tokens": numpy.array(tokens(row["line"], vocabulary))}


def source(work):
    if work.workload.name == "text":
        return [{"line": line} for line in work.lines], functools.partial(tokenized, work.vocabulary)
    return [{"path": path, "label": label} for path, label in work.photographs], functools.partial(photograph, work.workload.name)


def batches(work):
    import ray

    ray.init(num_cpus=work.workers, include_dashboard=False, log_to_driver=False, _temp_dir=tempfile.mkdtemp(prefix="ray-"))
    ray.data.DataContext.get_current().enable_progress_bars = False
    rows, function = source(work)
    made = ray.data.from_items(rows, override_num_blocks=len(rows) // work.batch_size).map(function)
    for batch in made.iter_torch_batches(batch_size=work.batch_size, drop_last=True, prefetch_batches=2):
        yield (batch["image"], batch["label"]) if "image" in batch else batch["tokens"]


PEERS = [Peer("Ray Data", on("photographs bytes contrastive text", batches), SAME_CODE, ("ray[data]==2.60.0", "pydantic"), "ray")]
