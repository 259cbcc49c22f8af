"""Waits for cheap batches beside forks, and without: with small waits the loader keeps its forks, with others it gives them up."""

import pytest

from sluice.makers import fork_comparison
from sluice.makers import payback as payback_module
from sluice.makers.fork_comparison import ForkComparison, Verdict
from sluice.makers.payback import Payback
from sluice.torch import DataLoader

ALONE_SECONDS = 0.0004  # A wait before there were forks.
FIRST = {
    # Waits for the first batches of forks, the batches of an epoch, and what these decide.
    "handing over takes longer than making": ([0.0015] * 24, 10_000, Verdict.NO_FORKS),
    "handing over takes as long": ([0.0004] * 24, 10_000, Verdict.NO_FORKS),
    "handing over takes half of it": ([0.0002] * 24, 10_000, None),
    "batches come by threes, in as much time": ([0.0012, 0.0, 0.0] * 8, 10_000, Verdict.NO_FORKS),
    "the start is slow": ([0.1] + [0.0002] * 23, 10_000, None),
    "an epoch spares less than the start takes": ([0.3] + [0.0002] * 23, 1_000, Verdict.NO_FORKS),
    "it is not known yet": ([0.1] * 23, 10_000, None),
}


def note_all(comparison, waits, by_fork=True, epoch_batches=10_000, may_rest=True):
    """What the last wait decides; those before it decide nothing."""
    verdicts = [comparison.note(wait_seconds, by_fork, epoch_batches, may_rest) for wait_seconds in waits]
    assert not any(verdicts[:-1])
    return verdicts[-1]


@pytest.mark.parametrize("case", FIRST)
def test_first_batches_of_forks_decide(case):
    waits, epoch_batches, verdict = FIRST[case]
    assert note_all(ForkComparison(ALONE_SECONDS), waits, epoch_batches=epoch_batches) is verdict


def test_batches_that_the_process_made_say_nothing_of_forks():
    comparison = ForkComparison(ALONE_SECONDS)
    assert note_all(comparison, [0.0015] * 100, by_fork=False) is None and comparison.is_first


def kept_at_first(later_seconds=0.0002) -> ForkComparison:
    """Forks rest now."""
    comparison = ForkComparison(ALONE_SECONDS)
    assert note_all(comparison, [0.0002] * 24 + [later_seconds] * 200) is Verdict.FORKS_REST and comparison.forks_rest
    return comparison


@pytest.mark.parametrize("alone, verdict", [([0.0004] * 24, Verdict.FORKS), ([0.1] + [0.0002] * 23, Verdict.NO_FORKS), ([0.0002] * 23, None)])
def test_process_is_compared_once_more(alone, verdict):
    assert note_all(kept_at_first(), alone, by_fork=False) is verdict


def test_forks_that_become_slower_are_given_up():
    comparison = kept_at_first(later_seconds=0.0004)
    assert note_all(comparison, [0.0004] * 24, by_fork=False) is Verdict.NO_FORKS
    assert comparison.handing_over_seconds == pytest.approx(0.0004)


def test_batches_that_forks_still_hold_are_not_the_process_s():
    assert note_all(kept_at_first(), [0.0001] * 50) is None


def test_forks_work_on_while_the_process_may_make_nothing():
    comparison = ForkComparison(ALONE_SECONDS)
    assert note_all(comparison, [0.0002] * 1_000, may_rest=False) is None and not comparison.forks_rest
    assert note_all(comparison, [0.0002]) is Verdict.FORKS_REST


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("persistent", [True, False])
def test_a_loop_gets_its_batches_in_their_order_while_forks_rest(make_fake, monkeypatch, persistent, is_kept):
    make_fake()
    monkeypatch.setenv("SLUICE_STEP_ASIDE", "on")
    monkeypatch.setattr(payback_module, "FORK_SECONDS", 0.0)
    monkeypatch.setattr(fork_comparison, "_LATER_BATCHES", 20)
    verdicts = []

    def usual(waits):
        """Forks look as asked for."""
        verdicts.append(len(waits))
        return {24: 1.0 if len(verdicts) > 1 else -1.0, 20: 0.5 if is_kept else 2.0}[len(waits)]

    monkeypatch.setattr(fork_comparison, "_usual", usual)
    loader = DataLoader(range(800), batch_size=4, num_workers=2, persistent_workers=persistent)
    loader._sluice_payback = Payback()
    rests = []
    for _ in range(2):
        passed = []
        for batch in loader:
            passed.extend(batch.tolist())
            rests.append(loader._sluice_payback.forks_rest)
        assert passed == list(range(800))
    assert 20 <= sum(rests) <= 40 and loader._sluice_payback.forks_pay == is_kept
