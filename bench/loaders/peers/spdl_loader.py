"""SPDL: a pipeline of threads around torchvision's decoder and tensors, which release the interpreter's lock; its own decoder needs FFmpeg's libraries."""

from peers import Peer, on
from peers.torch_loader import tensor_sample


def pipeline_batches(work, source, function):
    from spdl.pipeline import PipelineBuilder
    from torch.utils.data import default_collate

    builder = PipelineBuilder().add_source(source).pipe(function, concurrency=work.workers, output_order="input")
    builder = builder.aggregate(work.batch_size, drop_last=True).pipe(default_collate).add_sink(2)
    pipeline = builder.build(num_threads=work.workers)
    with pipeline.auto_stop():
        yield from pipeline


def batches(work):
    return pipeline_batches(work, work.photographs, tensor_sample(work))


def text_batches(work):
    import torch
    from torch_datasets import tokens

    return pipeline_batches(work, work.lines, lambda line: torch.tensor(tokens(line, work.vocabulary)))


WORKLOADS = on("photographs bytes contrastive", batches) | {"text": text_batches}
PEERS = [Peer("SPDL", WORKLOADS, "torchvision.io's", ("spdl==0.8.0",), "spdl")]
