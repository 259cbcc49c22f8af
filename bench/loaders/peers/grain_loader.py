"""Grain: the baseline's recipe in its worker processes."""

import functools

from peers import SAME_CODE, Peer, on


def photograph(recipe, sample):
    from PIL import Image

    return recipe(Image.open(sample[0]).convert("RGB")).numpy(), sample[1]


def tokenized(vocabulary, line):
    import numpy
    from torch_datasets import tokens

    return numpy.array(tokens(line, vocabulary))


def batches(work):
    import grain
    from torch_datasets import recipe

    text = work.workload.name == "text"
    function = functools.partial(tokenized, work.vocabulary) if text else functools.partial(photograph, recipe(work))
    made = grain.MapDataset.source(work.lines if text else work.photographs).map(function).batch(work.batch_size, drop_remainder=True)
    if text:  # Processes cost more than the text itself. By itself Grain would make 500 batches ahead.
        return iter(made.to_iter_dataset(grain.ReadOptions(num_threads=work.workers, prefetch_buffer_size=4)))
    return iter(made.to_iter_dataset().mp_prefetch(grain.multiprocessing.MultiprocessingOptions(num_workers=work.workers)))


PEERS = [Peer("Grain", on("photographs bytes contrastive text", batches), SAME_CODE, ("grain==0.2.18",), "grain")]
