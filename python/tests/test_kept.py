"""sluice.cached: what a call is known by, when a result is found, made, kept and not kept. The parent is a dictionary here."""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

import cloudpickle
import numpy
import pytest
import torch

from sluice import cached
from sluice.cache import kept
from sluice.cache.kept_keys import FunctionKey, NoKey
from sluice.executor.kept_calls import KeptCalls

made: list = []


@cached(version="1")
def double(number, other=None):
    made.append(number)
    return {"result": torch.full((2,), 2.0 * number)}


class Parent:
    """Keeps everything, and remembers what it was asked."""

    def __init__(self, **answer):
        self.results: dict = {}
        self.asked: list[dict] = []
        self.answer = answer
        self.pending: dict = {}
        self.calls = KeptCalls(self.ask, self.tell)

    def ask(self, message, arguments, most_seconds):
        self.asked.append(message)
        if self.answer.get("is_late"):
            return None
        key = (message["function"], message["version"], tuple(message.get("files", ())), arguments)
        self.pending[message["id"]] = key
        found = {"is_found": key in self.results, "keeps": True, "rest": 0, **self.answer}
        return found, self.answer.get("blob", self.results.get(key, b""))

    def tell(self, message, value):
        self.results[self.pending[message["id"]]] = value

    def __enter__(self):
        made.clear()
        kept.enter(self.calls)
        return self

    def __exit__(self, *_):
        kept.enter(None)

    def report(self) -> dict:
        return {told["function"].rpartition(".")[2]: told for told in self.calls.report()}


def test_a_result_is_made_once_and_each_caller_has_its_own():
    with Parent() as parent:
        results = [double(3) for _ in range(3)]
        results[1]["result"] += 1
        assert double(3)["result"].tolist() == [6.0, 6.0]
    assert made == [3]
    report = parent.report()["double"]
    assert (report["calls"], report["hits"], report["stores"]) == (1, 3, 1) and report["hit_bytes"] > 0
    assert parent.report() == {}


def test_outside_of_an_executor_it_is_the_function():
    made.clear()
    assert [double(3)["result"].tolist() for _ in range(2)] == [[6.0, 6.0]] * 2
    assert made == [3, 3]
    assert double.__name__ == "double" and double.__wrapped__(1)


def test_another_thread_and_a_fork_have_no_part_in_the_conversation():
    with Parent() as parent:
        thread = threading.Thread(target=double, args=(1,))
        thread.start()
        thread.join()
        child = os.fork()
        if child == 0:
            double(1)
            os._exit(len(parent.asked))
        assert os.waitpid(child, 0)[1] == 0 and parent.asked == []


def same_key(first: tuple, second: tuple) -> bool:
    key = FunctionKey(double.__wrapped__, "1", None)
    return key.of(first, {}) == key.of(second, {})


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (("a", "b"), ("a", "b"), True),
        (("ab", ""), ("a", "b"), False),
        ((("a",), "b"), (("a", "b"),), False),
        ((1,), (True,), False),
        ((1,), (1.0,), False),
        ((0.0,), (-0.0,), False),
        ((float("nan"),), (float("nan"),), True),
        (("a",), (b"a",), False),
        ((Path("/none/a"),), ("/none/a",), False),
        ((None,), ((),), False),
        ((2**70,), (2**70,), True),
    ],
)
def test_arguments_are_compared_in_full(first, second, same):
    assert same_key(first, second) == same


def test_arguments_by_name_count():
    with Parent():
        double(1)
        double(1, other="x")
        double(1, other="y")
        double(1, other="x")
    assert len(made) == 3


class Sounds:
    @cached(version="1")
    def of(self, index):
        return index

    @cached(version="1", key=lambda self, index: ("sounds", index))
    def by_key(self, index):
        made.append(index)
        return index


@pytest.mark.parametrize("with_cache", [False, True])
def test_an_argument_that_is_an_object_is_named_with_the_way_out(with_cache):
    with Parent() if with_cache else contextlib.nullcontext(), pytest.raises(TypeError) as told:
        Sounds().of(3)
    text = str(told.value)
    assert "Sounds.of" in text and "'self'" in text and "key=" in text


def test_a_key_stands_for_objects():
    with Parent():
        assert [Sounds().by_key(index) for index in (1, 2, 1)] == [1, 2, 1]
    assert made == [1, 2]


@pytest.mark.parametrize("bad", [{"version": ""}, {"version": "x" * 65}, {"version": 1}])
def test_a_version_is_a_short_text(bad):
    with pytest.raises(ValueError, match="version"):
        cached(**bad)(lambda: None)


def test_what_is_no_function_of_python_cannot_be_marked():
    with pytest.raises(TypeError, match="written in Python"):
        cached(version="1")(len)


def version_of(source: str) -> str:
    space: dict = {}
    exec(source, space)
    return FunctionKey(space["f"], "1", None).version


BEFORE = "def f(x, k=2):\n    return [i * k for i in x if i in {'one', 'two', 'three', 'four', 5}]\n"


@pytest.mark.parametrize(
    ("edited", "same"),
    [
        (BEFORE, True),
        ("\n# moved\n\n" + BEFORE, True),
        (BEFORE.replace("'one'", "'six'"), False),
        (BEFORE.replace("k=2", "k=3"), False),
        (BEFORE.replace("i * k", "i + k"), False),
        (BEFORE.replace("x", "y"), False),
        ("import functools\n" + BEFORE + "g = f\n@functools.wraps(g)\ndef f(*a): return g(*a)\n", False),
    ],
)
def test_an_edit_of_the_function_is_another_version(edited, same):
    assert (version_of(edited) == version_of(BEFORE)) == same


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_version_is_the_same_in_each_process(seed):
    program = f"exec({BEFORE!r})\nfrom sluice.cache.kept_keys import FunctionKey\nprint(FunctionKey(f, '1', None).version)"
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[1])}
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == version_of(BEFORE)


def test_files_are_those_that_arguments_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "töne.wav"
    file.write_bytes(b"x")
    os.mkfifo(tmp_path / "fifo")
    key = FunctionKey(double.__wrapped__, "1", None)
    for argument in (str(file), file, os.fsencode(file), ("a", (file,)), "töne.wav"):
        assert key.of((argument,), {}).files == [str(file)]
    for argument in (str(tmp_path), "no such file", "x" * 5000, "a\0b", str(tmp_path / "fifo"), 3, ""):
        assert key.of((argument,), {}).files == []
    with pytest.raises(NoKey, match="more than 8 files"):
        key.of((str(file),) * 9, {})
    odd = tmp_path / os.fsdecode(b"\xff.wav")
    odd.write_bytes(b"x")
    with pytest.raises(NoKey, match="UTF-8"):
        key.of((odd,), {})


def notices(caplog) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "sluice"]


@pytest.mark.parametrize("draw", [lambda: torch.rand(1), random.random, lambda: numpy.random.rand(), lambda: torch.manual_seed(1), lambda: random.seed(1)])
def test_a_function_that_draws_is_not_kept_and_told_once(draw, caplog):
    @cached(version="1")
    def noisy(number):
        draw()
        return number

    with caplog.at_level(logging.WARNING, "sluice"), Parent() as parent:
        assert [noisy(1) for _ in range(4)] == [1] * 4
    assert parent.results == {} and len(parent.asked) == 1
    assert len(notices(caplog)) == 1 and "draws random numbers" in notices(caplog)[0]


def test_a_batch_with_a_result_of_a_file_is_not_made_of_memory_alone(tmp_path):
    """The parent has looked at the file for it: what it finds may be another result in the next epoch."""
    (tmp_path / "a").write_text("a")
    same = cached(version="1")(lambda value: value)
    with Parent() as parent:
        for value, names_a_file in [("b", False), (str(tmp_path / "a"), True), (str(tmp_path / "a"), True), ("b", False)]:
            parent.calls.begin()
            assert (same(value), parent.calls.named_files) == (value, names_a_file)


def test_a_call_that_raises_is_not_kept():
    @cached(version="1")
    def failing(number):
        made.append(number)
        raise OSError("no such clip")

    with Parent() as parent:
        for _ in range(2):
            with pytest.raises(OSError, match="no such clip"):
                failing(1)
    assert made == [1, 1] and parent.results == {}


def test_a_value_that_cannot_be_kept_is_told_once(caplog):
    @cached(version="1")
    def odd(number):
        return {number}

    with caplog.at_level(logging.WARNING, "sluice"), Parent() as parent:
        assert [odd(1), odd(1)] == [{1}, {1}]
    assert parent.results == {} and len(notices(caplog)) == 1 and "class set" in notices(caplog)[0]


@pytest.mark.parametrize("answer", [{"is_found": True, "blob": b"damaged"}, {"is_found": True, "blob": pickle.dumps(5)}, {"is_late": True}, {"keeps": False}])
def test_whatever_the_parent_says_the_value_is_right(answer):
    with Parent(**answer) as parent:
        assert [double(4)["result"].tolist() for _ in range(3)] == [[8.0, 8.0]] * 3
    report = parent.report()["double"]
    if "is_late" in answer:
        assert report["late"] == 1 and len(parent.asked) == 1, "after a late answer nothing is asked for until the next batch"
        parent.calls.begin()
        with parent:
            double(4)
        assert len(parent.asked) == 2
    else:
        assert report.get("damaged", 0) == (3 if "blob" in answer else 0)
        assert answer.get("keeps") is None or parent.results == {}


def test_calls_that_need_no_question_are_counted_and_asked_about_again():
    with Parent(rest=5, keeps=False) as parent:
        for _ in range(13):
            double(1)
    assert len(parent.asked) == 3 and parent.report()["double"]["calls"] == 13


def test_a_call_counts_as_cold_where_a_function_within_had_to_be_made():
    @cached(version="1")
    def inner(number):
        return number

    @cached(version="1")
    def outer(number):
        return inner(number)

    with Parent() as parent:
        outer(1)
        assert parent.report()["outer"]["cold_calls"] == 1
        parent.results = {key: value for key, value in parent.results.items() if key[0].endswith("inner")}
        outer(1)
        report = parent.report()
    assert report["outer"]["calls"] == 1 and report["inner"]["hits"] == 1


def test_waits_for_a_parent_that_sleeps_count_for_what_it_says():
    parent = Parent(seconds=0.25)
    now = [0.0]

    def ask(*question):
        now[0] += 10.0
        return parent.ask(*question)

    parent.calls = KeptCalls(ask, parent.tell, clock=lambda: now[0], cpu_clock=lambda: 0.0)
    with parent:
        double(1), double(1)
    assert parent.report()["double"]["hit_seconds"] == pytest.approx(0.25)


def test_a_marked_function_of_a_script_travels():
    source = "from sluice import cached\n@cached(version='1')\ndef f(x):\n    return x + 1\n"
    space: dict = {"__name__": "__main__"}
    exec(source, space)
    copy = pickle.loads(cloudpickle.dumps(space["f"]))
    with Parent() as parent:
        assert [copy(1), space["f"](1)] == [2, 2]
    assert len(parent.results) == 1 and parent.report()["f"]["hits"] == 1


def test_the_name_imports_what_it_needs_alone():
    import sluice

    with pytest.raises(AttributeError, match="no attribute"):
        sluice.no_such_name  # noqa: B018
    assert sluice.cached is kept.cached


def test_the_example_of_the_user_guide(tmp_path):
    guide = (Path(__file__).resolve().parents[2] / "docs/user-guide.md").read_text()
    example = next(body for body in re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL) if "@cached" in body)
    names = {"numpy": numpy, "torch": torch, "__name__": "example"}
    exec(example, names)
    numpy.ones(1600, numpy.float32).tofile(tmp_path / "clip.f32")
    with Parent() as parent:
        first, second = (names["features"](tmp_path / "clip.f32") for _ in range(2))
    assert torch.equal(first["spectrum"], second["spectrum"]) and first["seconds"] == second["seconds"] == 0.1
    assert parent.report()["features"]["hits"] == 1
