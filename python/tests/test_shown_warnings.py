"""What Python remembers of the warnings that it has shown is the script's."""

from __future__ import annotations

import warnings

from test_forks import loader_with_forks


def test_a_warning_of_the_script_shows_once_beside_forks(make_fake, recwarn):
    make_fake()
    warnings.resetwarnings()
    warnings.simplefilter("default")
    registry: dict = {}
    for _ in range(3):
        warnings.warn_explicit("of the loop", UserWarning, "train.py", 5, registry=registry)
        assert len(list(loader_with_forks())) > 0
    assert [str(warning.message) for warning in recwarn.list if warning.filename == "train.py"] == ["of the loop"]
