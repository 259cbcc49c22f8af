"""Each rule catches its violation and lets good code pass."""

import pathlib

import pytest
import tidy

LONG_BODY = ["void run() {"] + ["  step();"] * 70 + ["}"]


@pytest.mark.parametrize("name, check, path, lines, want", [
    ("base includes no other part", tidy.check_dependency_direction, "src/base/a.cc", ['#include "src/kube/client.h"'], 1),
    ("operator may use kube", tidy.check_dependency_direction, "operator/act/a.cc", ['#include "src/kube/client.h"'], 0),
    ("scheduler does no I/O", tidy.check_dependency_direction, "scheduler/model/a.cc", ['#include "src/http/transport.h"'], 1),
    ("estimates precede allocation", tidy.check_dependency_direction, "scheduler/estimate/a.cc", ['#include "scheduler/allocate/target.h"'], 1),
    ("the core knows no simulator", tidy.check_dependency_direction, "scheduler/decide/a.cc", ['#include "scheduler/simulator/world/engine.h"'], 1),
    ("a test of an early step may decide", tidy.check_dependency_direction, "scheduler/estimate/a_test.cc", ['#include "scheduler/decide/decide.h"'], 0),
    ("observing does not act", tidy.check_dependency_direction, "operator/observe/a.cc", ['#include "operator/act/status.h"'], 1),
    ("a test does no foreign I/O", tidy.check_dependency_direction, "scheduler/model/a_test.cc", ['#include "src/http/transport.h"'], 1),
    ("the control plane joins the parts", tidy.check_dependency_direction, "operator/control_plane.cc", ['#include "operator/act/status.h"'], 0),
    ("lowering makes no batch", tidy.check_dependency_direction, "python/sluice/lowering/a.py", ["from sluice.executor.computation import Computation"], 1),
    ("a loader lowers", tidy.check_dependency_direction, "python/sluice/loader/a.py", ["from sluice.lowering.native_pipeline import lower"], 0),
    ("a folder's own module", tidy.check_dependency_direction, "python/sluice/stores/a.py", ["from sluice.stores import sigv4"], 0),
    ("a late import", tidy.check_dependency_direction, "python/sluice/base/a.py", ["    from sluice.loader import stream"], 1),
    ("an import by its name", tidy.check_dependency_direction, "python/sluice/shipping/a.py", ['    importlib.import_module("sluice.loader.stream").start()'], 1),
    ("a folder knows no public name", tidy.check_dependency_direction, "python/sluice/makers/a.py", ["from sluice.torch import DataLoader"], 1),
    ("what users import may use all", tidy.check_dependency_direction, "python/sluice/torch.py", ["from sluice.explain import report"], 0),
    ("a word of a sentence", tidy.check_dependency_direction, "python/sluice/base/a.py", ["# of what sluice.loader.stream says"], 0),
    ("a folder that imports", tidy.check_package, "python/sluice/loader/__init__.py", ['"""Loaders."""', "from sluice.loader import stream"], 1),
    ("a folder's concept", tidy.check_package, "python/sluice/loader/__init__.py", ['"""Loaders."""'], 0),
    ("a path into an object", tidy.check_api_names, "operator/decide/a.cc", ['integer_field(pool, "/spec/replicas")'], 1),
    ("a label's name in a pointer", tidy.check_api_names, "operator/act/a.cc", ['text(pod, "/labels/sluice.dev~1job", "sluice.dev~1job")'], 1),
    ("a label's name", tidy.check_api_names, "operator/control_plane.cc", ['labels["sluice.dev/job"]'], 1),
    ("the reader of fields", tidy.check_api_names, "operator/act/a.cc", ['#include "operator/api/fields.h"'], 1),
    ("the API knows paths", tidy.check_api_names, "operator/api/pod.cc", ['text_field(pod, "/spec/nodeName")'], 0),
    ("a test says what it expects", tidy.check_api_names, "operator/act/a_test.cc", ['text_field(pod, "/spec/nodeName")'], 0),
    ("a page of a server", tidy.check_api_names, "operator/main.cc", ['{"/metrics", page}'], 0),
    ("a member that is read", tidy.check_object_members, "operator/act/a.cc", ['if (pod["spec"].is_null()) return;'], 1),
    ("a member that is written", tidy.check_object_members, "operator/decide/a.cc", ['spec["replicas"] = 3;'], 1),
    ("a member that is asked for", tidy.check_object_members, "operator/observe/a.cc", ['if (pod.contains("status")) return;'], 1),
    ("a member by the reader of all", tidy.check_object_members, "operator/control_plane.cc", ['return api::member(map, "data");'], 1),
    ("an object as a literal", tidy.check_object_members, "operator/act/a.cc", ['json body = {{"spec", std::move(spec)}};'], 1),
    ("a draft", tidy.check_object_members, "operator/act/a.cc", ['service.add_port("rendezvous", kRendezvousPort, kRendezvousPort);'], 0),
    ("a field of a log line", tidy.check_object_members, "operator/decide/a.cc", ['log_info("decide", "scaled", {{"job", job}});'], 0),
    ("a comment on a command", tidy.check_object_members, "operator/act/a.h", ['// ["ld.so", "--library-path"]'], 0),
    ("a draft of the API", tidy.check_object_members, "operator/api/a.cc", ['spec["replicas"] = 3;'], 0),
    ("a page of our own", tidy.check_object_members, "operator/publish/a.cc", ['page["jobs"].push_back(job);'], 0),
    ("a test's object", tidy.check_object_members, "operator/act/a_test.cc", ['job["spec"]["mode"] = "Off";'], 0),
    ("a long file", tidy.check_file_length, "src/base/a.cc", ["x"] * 401, 1),
    ("a file of helpers", tidy.check_names, "src/base/string_utils.cc", [], 1),
    ("a manager", tidy.check_names, "src/base/a.h", ["class PoolManager {"], 1),
    ("a well named class", tidy.check_names, "src/base/a.h", ["class Pool {"], 0),
    ("hidden work", tidy.check_unfinished, "src/base/a.cc", ["// TO" + "DO later"], 1),
    ("a subject that is nobody", tidy.check_subjects, "src/base/a.h", ["// Whoever calls it locks."], 1),
    ("a value that is nobody", tidy.check_subjects, "src/base/a_test.cc", ['pod["schedulerName"] = "nobody";'], 0),
    ("no guard", tidy.check_header_guard, "src/base/a.h", ["int x;"], 1),
    ("a long function", tidy.check_function_length, "src/base/a.cc", LONG_BODY, 1),
    ("a long namespace is fine", tidy.check_function_length, "src/base/a.cc", ["namespace a {"] + ["int f();"] * 90 + ["}"], 0),
    ("a long method in a class", tidy.check_function_length, "src/base/a.cc", ["class A {"] + LONG_BODY + ["};"], 1),
    ("a long Python function", tidy.check_function_length, "a.py", ["def f():"] + ["    x = 1"] * 75, 1),
    ("short Python functions", tidy.check_function_length, "a.py", ["def f():", "    pass"] * 60, 0),
])
def test_rule(name, check, path, lines, want):
    assert len(list(check(pathlib.Path(path), lines))) == want


@pytest.mark.parametrize("name, before, second, want", [
    ("two functions of one name", 0, "Node node(int cores) {", 1),
    ("two names", 0, "Node priced_node(int cores) {", 0),
    ("one of a class", 0, "Node Cluster::node(int cores) {", 0),
    ("in two units", tidy.TEST_FILES_TOGETHER - 1, "Node node(int cores) {", 0),
])
def test_functions_that_are_compiled_together(tmp_path, monkeypatch, name, before, second, want):
    monkeypatch.setattr(tidy, "ROOT", tmp_path)
    others = [f"other_{number}_test.cc" for number in range(before)]
    for file, text in {"a_test.cc": "Node node(const char* name) {", **dict.fromkeys(others, ""), "b_test.cc": second}.items():
        (tmp_path / file).write_text(text + "\n")
    lines = ["sluice_test(sluice_test", "  a_test.cc", *(f"  {other}" for other in others), "  b_test.cc", "  LIBS sluice)"]
    assert len(list(tidy.check_compiled_together(pathlib.Path("CMakeLists.txt"), lines))) == want, name


def test_each_folder_of_the_client_uses_those_before_it():
    for place, folder in enumerate(tidy.CLIENT_FOLDERS):
        assert set(tidy.DEPENDENCIES[f"{tidy.CLIENT}/{folder}"]) <= set(tidy.of_client(*tidy.CLIENT_FOLDERS[:place]))
