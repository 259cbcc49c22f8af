"""WebDataset: the photographs in tar shards, the baseline's recipe on PIL images, batches made in the worker processes."""

from peers import SAME_CODE, Peer, on


def shards(work):
    """The photographs of the folder in tar files, once."""
    from training_data import shards_of

    def make(folder):
        folder.mkdir()
        shards_of(sorted({file for file, _ in work.photographs}), folder)

    return sorted(map(str, work.made_once("shards", make).glob("*.tar")))


def batches(work):
    import webdataset
    from torch_datasets import recipe

    urls = shards(work)
    repeated = urls * (2 + work.workload.samples // len({file for file, _ in work.photographs}))
    samples = webdataset.WebDataset(repeated, shardshuffle=False).decode("pil").to_tuple("jpg", "cls").map_tuple(recipe(work), int)
    batched = samples.batched(work.batch_size, partial=False)
    return iter(webdataset.WebLoader(batched, batch_size=None, num_workers=work.workers))


PEERS = [Peer("WebDataset", on("photographs bytes contrastive", batches), SAME_CODE, ("webdataset",), prepare=shards)]
