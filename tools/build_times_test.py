"""What build_times.py makes of a log, and what it puts before the compiler."""

import build_times


def test_seconds_are_summed_by_target_and_the_dearest_comes_first():
    log = ["1.000 src/kube/CMakeFiles/sluice_kube.dir/store.cc.o", "2.500 src/http/CMakeFiles/sluice_http.dir/server.cc.o",
           "0.500 src/kube/CMakeFiles/sluice_kube.dir/backoff.cc.o"]  # fmt: skip
    text = build_times.report(log)
    assert text.splitlines()[0].split() == ["4.0", "CPU-seconds,", "3", "files"]
    assert text.index("2.5  sluice_http, 1 files") < text.index("1.5  sluice_kube, 2 files")
    assert text.index("2.5  src/http") < text.index("1.0  src/kube") < text.index("0.5  src/kube")


def test_the_launcher_runs_the_command_adds_a_line_and_passes_its_status_on(tmp_path):
    log = tmp_path / "log"
    assert build_times.measure(log, ["bash", "-c", "exit 3", "-o", "a.dir/x.o"]) == 3
    assert build_times.measure(log, ["true", "-o", "a.dir/y.o"]) == 0
    assert [line.split()[1] for line in log.read_text().splitlines()] == ["a.dir/x.o", "a.dir/y.o"]
