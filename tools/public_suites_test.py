"""What public_suites.py makes of reports, and that the class takes the stock one's place in every process."""

import json
import sys

import public_suites
import pytest

RECORD = [
    ("a.py::B::good", "begun"), ("a.py::B::good", "passed"),
    ("a.py::B::bad", "begun"), ("a.py::B::bad", "failed: AssertionError: 1"),
    ("a.py::B::absent", "begun"), ("a.py::B::absent", "skipped"),
    ("a.py::B::parts", "begun"), ("a.py::B::parts", "failed: part 2"), ("a.py::B::parts", "passed"),
    ("a.py::deadly", "begun"),
]  # fmt: skip

SUITE = """
import subprocess, sys
import stock
def test_here(): assert stock.Loader == "ours"
def test_in_a_process(): subprocess.run([sys.executable, "-c", "import stock; assert stock.Loader == 'ours'"], check=True)
def test_of_the_stock_class(): assert stock.Loader == "stock"
"""


def test_a_record_is_read():
    found = public_suites.outcomes("\n".join(map(json.dumps, RECORD)))
    assert [found[f"a.B.{name}"].split(":")[0] for name in ("good", "bad", "absent", "parts")] == ["passed", "failed", "skipped", "failed"]
    assert found["a.deadly"] == "failed: pytest ended in it"
    assert public_suites.summary(found) == "1 passed, 3 failed, 1 skipped"


def test_a_suite_that_takes_pytest_down_has_told_of_its_tests(tmp_path):
    suite = tmp_path / "test_suite.py"
    suite.write_text("""
import os, pytest
@pytest.fixture
def torn():
    yield
    assert False, "torn down"
def test_good(): pass
def test_torn(torn): pass
def test_absent(): pytest.skip("no GPU")
def test_deadly(): os._exit(1)
def test_later(): pass
""")
    found = public_suites.run(sys.executable, suite, "", [])
    assert list(found) == [f"test_suite.test_{name}" for name in ("good", "torn", "absent", "deadly")]
    assert list(found.values()) == ["passed", "failed: AssertionError: torn down", "skipped", "failed: pytest ended in it"]


def test_differences_are_listed_and_only_a_lost_test_is_a_loss():
    stock = {"same": "passed", "lost": "passed", "won": "failed: x", "gone": "passed"}
    ours = {"same": "passed", "lost": "failed: y", "won": "passed"}
    assert [line.split()[0] for line in public_suites.differences(stock, ours, {})] == ["gone", "lost", "won"]
    assert public_suites.surprises(stock, ours, {}) == ["gone", "lost"]


def test_an_expected_loss_is_told_with_its_reason_and_must_be_one():
    stock = {f"suite.A.{name}": "passed" for name in ("lost", "found")} | {"suite.A.bad": "failed: x"}
    ours = {"suite.A.lost": "failed: y", "suite.A.found": "passed", "suite.A.bad": "failed: x"}
    expected = {"A.lost": "does this", "A.found": "does that", "A.bad": "does neither"}
    assert public_suites.differences(stock, ours, expected)[0].endswith("because it does this")
    assert public_suites.surprises(stock, ours, expected) == ["suite.A.found"]


def test_ours_takes_the_place_when_the_module_is_imported_and_not_before(tmp_path):
    pytest.importorskip("torch")
    suite = tmp_path / "test_suite.py"
    suite.write_text("""
import sys
def test_not_yet(): assert "torch" not in sys.modules
def test_then():
    import torch.utils.data
    assert torch.utils.data.DataLoader.__module__ == "sluice.torch"
    assert torch.utils.data.dataloader.DataLoader.__module__ == "torch.utils.data.dataloader"
def test_off(): assert __import__("os").environ["SLUICE"] == "off"
""")
    found = public_suites.run(sys.executable, suite, public_suites.SUBSTITUTION.format(module="torch.utils.data", name="DataLoader"), [],
                              {"SLUICE": "off"})
    assert list(found.values()) == ["passed"] * 3


def test_the_class_is_substituted_in_every_process(tmp_path):
    (tmp_path / "stock.py").write_text("Loader = 'stock'")
    suite = tmp_path / "test_suite.py"
    suite.write_text(SUITE)
    path = f"import sys; sys.path.insert(0, {str(tmp_path)!r});"
    stock = public_suites.run(sys.executable, suite, path, [])
    ours = public_suites.run(sys.executable, suite, path + "import stock; stock.Loader = 'ours'", [])
    assert list(stock.values()).count("passed") == 1 and stock["test_suite.test_of_the_stock_class"] == "passed"
    assert list(ours.values()).count("passed") == 2 and ours["test_suite.test_of_the_stock_class"].startswith("failed")
