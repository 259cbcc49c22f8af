"""torch.utils.data.DataLoader: the baseline with PIL, and the faster way of torchvision's own decoder and tensors."""

from peers import Peer, on


def batches(work):
    import torch
    from torch_datasets import dataset

    return iter(torch.utils.data.DataLoader(dataset(work), batch_size=work.batch_size, num_workers=work.workers, drop_last=True))


def batches_in_process(work):
    """Worker processes cost more than cheap text itself: torch's cheapest setting for it."""
    import torch
    from torch_datasets import dataset

    return iter(torch.utils.data.DataLoader(dataset(work), batch_size=work.batch_size, drop_last=True))


def tensor_steps(work):
    """torchvision's second version of the recipes, on tensors of bytes as long as that is possible."""
    import torch
    from torchvision.transforms import v2
    from training_data import DEVIATION, MEAN
    from workloads import IMAGE_SIDE

    steps = [v2.RandomResizedCrop(IMAGE_SIDE, antialias=True), v2.RandomHorizontalFlip()]
    if work.workload.name == "contrastive":
        colours = v2.RandomApply([v2.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8)
        steps += [colours, v2.RandomGrayscale(0.2), v2.RandomApply([v2.GaussianBlur(23)], p=0.5), v2.ToDtype(torch.float32, scale=True)]
    if work.workload.name == "photographs":
        steps += [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, DEVIATION)]
    return v2.Compose(steps)


def tensor_sample(work):
    """A function from path and label to a sample."""
    from torchvision.io import ImageReadMode, decode_jpeg, read_file

    steps = tensor_steps(work)
    return lambda sample: (steps(decode_jpeg(read_file(sample[0]), mode=ImageReadMode.RGB)), sample[1])


class TensorPhotographs:
    def __init__(self, work):
        self.photographs, self.sample = work.photographs, tensor_sample(work)

    def __len__(self):
        return len(self.photographs)

    def __getitem__(self, index):
        return self.sample(self.photographs[index])


def tensor_batches(work):
    import torch

    return iter(torch.utils.data.DataLoader(TensorPhotographs(work), batch_size=work.batch_size, num_workers=work.workers, drop_last=True))


PEERS = [
    Peer("torch", on("photographs bytes own contrastive", batches) | on("text", batches_in_process), "PIL: the baseline", ("torch",)),
    Peer("torch, two workers", on("text", batches), "", ("torch",)),
    Peer("torch, torchvision.io", on("photographs bytes contrastive", tensor_batches), "antialias; close to PIL's", ("torchvision",)),
]
