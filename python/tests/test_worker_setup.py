"""Which worker_init_fn is known to do nothing but seed, and what happens to loaders with another one."""

from __future__ import annotations

import functools
import random

import numpy
import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader as TorchLoader, get_worker_info

from sample_datasets import Numbers, OwnGenerator, fail_at_start, give_generator, tag_dataset
from sluice.loader.iterator import FeederIterator
from sluice.loader.offered import state_kept
from sluice.loader.worker_setup import only_seeds
from sluice.torch import DataLoader
from test_loader import equal

SEED = 3
counter = 0


def of_the_documentation(worker_id):
    worker_seed = torch.initial_seed() % 2**32
    numpy.random.seed(worker_seed)
    random.seed(worker_seed)


def of_many_repositories(worker_id):
    np.random.seed(np.random.get_state()[1][0] + worker_id)


def from_the_worker(worker_id):
    info = get_worker_info()
    random.seed(info.seed)
    torch.manual_seed(info.seed % 2**31 + SEED)


def with_imports_inside(worker_id):
    import random as generator

    generator.seed(torch.utils.data.get_worker_info().seed)


def through_another(worker_id, offset=0):
    of_the_documentation(worker_id + offset)


def the_same_everywhere(worker_id):
    torch.manual_seed(12345)
    numpy.random.seed(SEED)
    random.seed(SEED)


def seed_all(seed):
    torch.manual_seed(seed)


def the_same_through_another(worker_id):
    seed_all(SEED)


def counting(worker_id):
    global counter
    counter += 1
    random.seed(counter)


def opening(worker_id):
    random.seed(len(open("/dev/null").read()))


def closure_over(value):
    def seed(worker_id):
        random.seed(value + worker_id)

    return seed


SEEDING = [of_the_documentation, of_many_repositories, from_the_worker, with_imports_inside, through_another, closure_over(7),
           functools.partial(through_another, offset=2), lambda worker_id: np.random.seed(worker_id)]
DOING_MORE = [the_same_everywhere, the_same_through_another, tag_dataset, give_generator, fail_at_start, counting, opening, closure_over([7]), print, len, Numbers().__getitem__,
              lambda worker_id: setattr(get_worker_info().dataset, "tag", 1)]


@pytest.mark.parametrize("function", SEEDING)
def test_known_to_only_seed(function):
    assert only_seeds(function)


@pytest.mark.parametrize("function", DOING_MORE)
def test_not_known_to_only_seed(function):
    assert not only_seeds(function)


@pytest.mark.parametrize("function", [of_the_documentation, of_many_repositories, from_the_worker])
def test_a_seeding_function_changes_nothing(any_feeder, function):
    runs = []
    for init in (None, function):
        torch.manual_seed(3)
        loader = DataLoader(Numbers(), batch_size=4, num_workers=8, worker_init_fn=init)
        runs.append(list(loader))
        assert isinstance(iter(loader), FeederIterator)
    assert equal(*runs)


def test_one_seed_in_all_workers_gives_the_numbers_that_torch_gives(any_feeder):
    runs = []
    for seed, loader_class in ((5, TorchLoader), (5, DataLoader), (6, DataLoader)):
        torch.manual_seed(seed)
        runs.append(list(loader_class(Numbers(), batch_size=4, num_workers=3, worker_init_fn=the_same_everywhere)))
    assert equal(runs[0], runs[1]) and equal(runs[0], runs[2])


def test_a_seeding_function_does_not_keep_images_in_python(image_root, monkeypatch):
    from torchvision import transforms
    from torchvision.datasets import ImageFolder

    monkeypatch.setenv("SLUICE_FEEDER_SOCKET", "/run/sluice/feeder.sock")
    images = ImageFolder(image_root, transforms.Compose([transforms.RandomResizedCrop(32), transforms.ToTensor()]))
    assert DataLoader(images, num_workers=2, worker_init_fn=of_the_documentation).explain().startswith("executor: native")


def test_a_function_that_touches_the_dataset_draws_what_torch_draws(any_feeder, caplog):
    runs = []
    for loader_class in (TorchLoader, DataLoader, DataLoader):
        torch.manual_seed(5)
        runs.append(list(loader_class(OwnGenerator(), batch_size=2, num_workers=3, worker_init_fn=give_generator)))
    assert equal(runs[0], runs[1]) and equal(runs[0], runs[2])
    draws = torch.cat(runs[1])[:, 1]
    assert draws.unique().numel() == draws.numel()
    assert sum("worker_init_fn give_generator" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("function", [tag_dataset, functools.partial(tag_dataset), functools.partial(functools.partial(tag_dataset))])
def test_the_reason_names_the_users_function(function):
    loader = DataLoader(Numbers(), batch_size=4, num_workers=2, worker_init_fn=function)
    assert state_kept(loader).startswith("worker_init_fn tag_dataset may do more than")
