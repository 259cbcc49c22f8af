"""What public_suites.py makes of reports, and that the class takes the stock one's place in every process."""

import sys

import public_suites
import pytest

REPORT = """<testsuites><testsuite>
<testcase classname="a.B" name="good"/>
<testcase classname="a.B" name="bad"><failure message="AssertionError: 1\nmore"/></testcase>
<testcase classname="a.B" name="absent"><skipped message="no GPU"/></testcase>
<testcase classname="a.B" name="parts"><failure message="part 2"/></testcase><testcase classname="a.B" name="parts"/>
</testsuite></testsuites>"""

SUITE = """
import subprocess, sys
import stock
def test_here(): assert stock.Loader == "ours"
def test_in_a_process(): subprocess.run([sys.executable, "-c", "import stock; assert stock.Loader == 'ours'"], check=True)
def test_of_the_stock_class(): assert stock.Loader == "stock"
"""


def test_a_report_is_read():
    found = public_suites.outcomes(REPORT)
    assert [found[f"a.B.{name}"].split(":")[0] for name in ("good", "bad", "absent", "parts")] == ["passed", "failed", "skipped", "failed"]
    assert public_suites.summary(found) == "1 passed, 2 failed, 1 skipped"


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
