"""numpy's global generator goes on as if nothing had happened in between, whatever it had drawn before."""

from __future__ import annotations

import numpy
import pytest

from sluice.executor import numpy_state
from sluice.executor.numpy_state import NumpyState


@pytest.fixture(autouse=True)
def own_generator(monkeypatch):
    """The generator and its state are those of before, afterwards."""
    before, generator = numpy.random.get_state(), numpy.random.get_bit_generator()
    monkeypatch.setattr(numpy_state, "_last", None)
    yield
    numpy.random.set_bit_generator(generator)
    numpy.random.set_state(before)


def draws() -> list[float]:
    """Deviates first, so that one that was kept back shows."""
    return [*numpy.random.randn(3), *numpy.random.rand(700), numpy.random.randint(1 << 30)]


BEFORE = {
    "a fresh seed": lambda: numpy.random.seed(5),
    "draws from the midst": lambda: (numpy.random.seed(5), numpy.random.rand(401)),
    "a deviate kept back": lambda: (numpy.random.seed(5), numpy.random.randn(3)),
    "a deviate kept back and used": lambda: (numpy.random.seed(5), numpy.random.randn(4)),
    "another kind of generator": lambda: numpy.random.set_bit_generator(numpy.random.PCG64(5)),
}
BETWEEN = {"nothing": lambda: None, "a seed": lambda: numpy.random.seed(9), "deviates": lambda: numpy.random.randn(7), "numbers": lambda: numpy.random.rand(900)}


# numpy seeds no other kind.
PAIRS = [(before, between) for before in BEFORE for between in BETWEEN if (before, between) != ("another kind of generator", "a seed")]


@pytest.mark.filterwarnings("ignore:get_state and legacy")
@pytest.mark.parametrize("before, between", PAIRS)
def test_the_draws_go_on(before, between):
    BEFORE[before]()
    expected = draws()
    BEFORE[before]()
    for _ in range(2):
        state = NumpyState.capture()
        BETWEEN[between]()
        state.enter()
    assert draws() == expected


def test_a_deviate_that_is_used_between_two_captures_is_missed_afterwards():
    """Using it changes no word of the generator's memory."""
    numpy.random.seed(5)
    numpy.random.randn(1)
    NumpyState.capture().enter()
    numpy.random.randn(1)
    expected = numpy.random.get_state()
    state = NumpyState.capture()
    numpy.random.randn(1)
    state.enter()
    assert numpy.random.get_state()[3:] == expected[3:] == (0, 0.0)


def test_numpy_is_asked_once_where_the_loop_draws_nothing():
    numpy.random.seed(5)
    NumpyState.capture()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy.random, "get_state", lambda: pytest.fail("it costs every batch"))
        patch.setattr(numpy.random, "set_state", lambda _: pytest.fail("it costs every batch"))
        state = NumpyState.capture()
        numpy.random.rand(3)
        state.enter()
        assert NumpyState.capture() is state
