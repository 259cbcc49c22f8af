"""The runner's own counting: a test that fails, crashes or vanishes is never counted as passed."""

import run

REPORT = """<Catch name="x"><Group name="x">
<TestCase name="a"><OverallResult success="true"/></TestCase>
<TestCase name="b"><OverallResult success="{success}"/></TestCase>
<OverallResultsCases successes="{passed}" failures="{failed}" expectedFailures="0"/></Group></Catch>"""


def tally_of(tmp_path, text, ok):
    report = tmp_path / "report.xml"
    if text is not None:
        report.write_text(text)
    tally = run.count_catch("x", report, ok)
    return tally.passed, tally.failed


def test_passes_and_failures_are_counted_by_test_case(tmp_path):
    assert tally_of(tmp_path, REPORT.format(success="true", passed=2, failed=0), True) == (2, 0)
    assert tally_of(tmp_path, REPORT.format(success="false", passed=1, failed=1), False) == (1, 1)


def test_a_sanitizer_report_after_the_last_test_is_a_failure(tmp_path):
    assert tally_of(tmp_path, REPORT.format(success="true", passed=2, failed=0), False) == (2, 1)


def test_a_crash_that_leaves_no_report_is_a_failure(tmp_path):
    assert tally_of(tmp_path, None, False) == (0, 1)
    assert tally_of(tmp_path, "<Catch name='x'><Group", False) == (0, 1)
