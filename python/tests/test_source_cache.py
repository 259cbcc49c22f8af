"""What `explain` says of the cache of source files."""

import pytest

from sluice.base.settings import Settings
from sluice.cache.source_cache import cache_in_words

HALF_A_CACHE = "source files: not cached (one of SLUICE_CACHE_DIR and SLUICE_CACHE_BYTES is missing: set both)\n"


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({}, ""),
        ({"SLUICE_CACHE_DIR": "", "SLUICE_CACHE_BYTES": ""}, ""),
        ({"SLUICE_CACHE_DIR": "/none"}, HALF_A_CACHE),
        ({"SLUICE_CACHE_BYTES": "1000"}, HALF_A_CACHE),
        ({"SLUICE_CACHE_DIR": "/none", "SLUICE_CACHE_BYTES": "10GB"}, "source files: not cached (SLUICE_CACHE_BYTES=10GB: use a number of bytes)\n"),
        ({"SLUICE_CACHE_DIR": "/none", "SLUICE_CACHE_BYTES": "0"}, "source files: not cached (SLUICE_CACHE_BYTES=0: use a number of bytes)\n"),
        (
            {"SLUICE_CACHE_DIR": "/none", "SLUICE_CACHE_BYTES": "2000000000", "SLUICE_CACHE_FORM": "transcoded"},
            "source files: cached, JPEG transcoded, in /none, 0.0 GB of at most 2.0 GB\n",
        ),
        (
            {"SLUICE_CACHE_DIR": "/none", "SLUICE_CACHE_BYTES": "2000000000", "SLUICE_CACHE_FORM": "pixels"},
            "source files: not cached (SLUICE_CACHE_FORM=pixels: use auto or source or transcoded or prefix)\n",
        ),
        (
            {"SLUICE_CACHE_DIR": "/none", "SLUICE_CACHE_BYTES": "2000000000", "SLUICE_CACHE_FORM": "prefix"},
            "source files: cached, as what the transforms before the first random one make of them, in /none, 0.0 GB of at most 2.0 GB\n",
        ),
        (
            {"SLUICE_CACHE_DIR": "/none", "SLUICE_CACHE_BYTES": "20000000000", "SLUICE_CACHE_FORM": "source"},
            "source files: cached in /none, 0.0 GB of at most 20.0 GB\n",
        ),
        ({"SLUICE_CACHE_SOCKET": "/run/cache.sock"}, "source files: cached, in the form that is measured to pay, by the node's cache at /run/cache.sock\n"),
        ({"SLUICE_CACHE_SOCKET": "/run/cache.sock", "SLUICE_CACHE_FORM": "source"}, "source files: cached by the node's cache at /run/cache.sock\n"),
        ({"SLUICE_CACHE_SOCKET": "cache:7472"}, "source files: not cached (SLUICE_CACHE_SOCKET=cache:7472: use the path of sluice-cache's socket)\n"),
        (
            {"SLUICE_CACHE_SOCKET": "/run/cache.sock", "SLUICE_CACHE_BYTES": "1000"},
            "source files: not cached (SLUICE_CACHE_SOCKET is set beside SLUICE_CACHE_DIR or SLUICE_CACHE_BYTES: use one cache, and unset the other's variables)\n",
        ),
        ({"SLUICE_CACHE_DIR": "/none", "SLUICE_CACHE_BYTES": "20000000000"}, "source files: cached, in the form that is measured to pay, in /none, 0.0 GB of at most 20.0 GB\n"),
    ],
)
def test_both_variables_ask_for_a_cache(environment, words):
    assert cache_in_words(Settings(), environment) == words


def test_the_segments_on_disk_are_counted_and_nothing_else(tmp_path):
    for name in ("sluice-00000001.segment", "sluice-0000000a.segment", "data.bin"):
        with open(tmp_path / name, "wb") as file:
            file.truncate(1_500_000_000)
    environment = {"SLUICE_CACHE_DIR": str(tmp_path), "SLUICE_CACHE_BYTES": "10000000000"}
    assert cache_in_words(Settings(), environment) == f"source files: cached, in the form that is measured to pay, in {tmp_path}, 3.0 GB of at most 10.0 GB\n"
    beside = Settings(feeder_socket="/run/sluice/feeder.sock")
    assert cache_in_words(beside, environment) == f"source files: cached, in the form that is measured to pay, by the feeder in {tmp_path}, at most 10.0 GB\n"
