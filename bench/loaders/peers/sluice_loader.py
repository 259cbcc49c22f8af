"""sluice.torch.DataLoader, local: a client with its feeder, on one machine."""

import os

from peers import OURS, Peer, on


def batches(work):
    """Each sample draws from a seed of its own: the default."""
    # A loop as short as this one gets the feeder's executors at once. Text is as users have it: the loader decides.
    os.environ["SLUICE_STEP_ASIDE"] = "on" if work.workload.name == "text" else "off"
    from torch_datasets import dataset

    import sluice.torch
    from sluice.base.settings import Settings
    from sluice.feeder.choice import feeder_in_words

    if feeder_in_words(Settings.from_environment()) is None:
        raise RuntimeError("SLUICE_FEEDER_BINARY names no feeder: this would be torch's loader")
    return iter(sluice.torch.DataLoader(dataset(work), batch_size=work.batch_size, num_workers=work.workers, drop_last=True))


def batches_of_torch(work):
    """Every random number is the one that torch's worker draws: the first batch's checksum must be torch's."""
    os.environ["SLUICE_RANDOMNESS"] = "torch"
    return batches(work)


PEERS = [
    Peer(OURS, on("photographs bytes own contrastive text", batches), "PIL's bytes, with a seed for each sample", ("sluice",)),
    Peer(f"{OURS}, SLUICE_RANDOMNESS=torch", on("photographs own", batches_of_torch), "not torch's bytes, which it should be", ("sluice",)),
]
