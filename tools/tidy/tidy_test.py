"""Each rule catches its violation and lets good code pass."""

import pathlib

import pytest
import tidy

LONG_BODY = ["void run() {"] + ["  step();"] * 70 + ["}"]


@pytest.mark.parametrize("name, check, path, lines, want", [
    ("base includes nobody", tidy.check_dependency_direction, "src/base/a.cc", ['#include "src/kube/client.h"'], 1),
    ("operator may use kube", tidy.check_dependency_direction, "operator/act/a.cc", ['#include "src/kube/client.h"'], 0),
    ("scheduler does no I/O", tidy.check_dependency_direction, "scheduler/a.cc", ['#include "src/http/transport.h"'], 1),
    ("a long file", tidy.check_file_length, "src/base/a.cc", ["x"] * 401, 1),
    ("a file of helpers", tidy.check_names, "src/base/string_utils.cc", [], 1),
    ("a manager", tidy.check_names, "src/base/a.h", ["class PoolManager {"], 1),
    ("a well named class", tidy.check_names, "src/base/a.h", ["class Pool {"], 0),
    ("hidden work", tidy.check_unfinished, "src/base/a.cc", ["// TO" + "DO later"], 1),
    ("no guard", tidy.check_header_guard, "src/base/a.h", ["int x;"], 1),
    ("a long function", tidy.check_function_length, "src/base/a.cc", LONG_BODY, 1),
    ("a long namespace is fine", tidy.check_function_length, "src/base/a.cc", ["namespace a {"] + ["int f();"] * 90 + ["}"], 0),
    ("a long method in a class", tidy.check_function_length, "src/base/a.cc", ["class A {"] + LONG_BODY + ["};"], 1),
    ("a long Python function", tidy.check_function_length, "a.py", ["def f():"] + ["    x = 1"] * 75, 1),
    ("short Python functions", tidy.check_function_length, "a.py", ["def f():", "    pass"] * 60, 0),
])
def test_rule(name, check, path, lines, want):
    assert len(list(check(pathlib.Path(path), lines))) == want
