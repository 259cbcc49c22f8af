"""MosaicML streaming: the photographs in its shards, the baseline's recipe on PIL images, in torch's loader."""

from peers import SAME_CODE, Peer, on


def shards(work):
    from streaming import MDSWriter

    def make(folder):
        with MDSWriter(out=str(folder), columns={"image": "bytes", "label": "int"}) as writer:
            for path, label in dict(work.photographs).items():
                with open(path, "rb") as file:
                    writer.write({"image": file.read(), "label": label})

    return work.made_once("mds", make)


def batches(work):
    import io

    from PIL import Image
    from streaming import Stream, StreamingDataset
    from torch.utils.data import DataLoader
    from torch_datasets import recipe

    class Photographs(StreamingDataset):
        def __getitem__(self, index):
            sample = super().__getitem__(index)
            return steps(Image.open(io.BytesIO(sample["image"])).convert("RGB")), sample["label"]

    steps = recipe(work)
    repeats = 1 + work.workload.samples // len(dict(work.photographs))
    samples = Photographs(streams=[Stream(local=str(shards(work)), repeat=repeats)], batch_size=work.batch_size)
    return iter(DataLoader(samples, batch_size=work.batch_size, num_workers=work.workers, drop_last=True))


PEERS = [Peer("MosaicML streaming", on("photographs bytes contrastive", batches), SAME_CODE, ("mosaicml-streaming==0.13.0",), "mosaicml", shards)]
