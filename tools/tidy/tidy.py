#!/usr/bin/env python3
"""Style as a test: the house rules that a machine can check, one function a rule.

Run by `make check` and `make test`. Prints one line per violation, `file:line: rule`, and exits 1 if there is any.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70

# A folder may include from the folders named here, and from itself. Paths are prefixes of repository folders.
DEPENDENCIES = {
    "src/base": [],
    "src/http": ["src/base"],
    "src/kube": ["src/base", "src/http"],
    "src/prom": ["src/base", "src/http"],
    "src/pipeline": ["src/base"],
    "src/transport": ["src/base"],
    "src/executor": ["src/base", "src/pipeline", "src/transport"],
    "worker-image": ["src/base", "src/http", "src/pipeline", "src/transport", "src/executor"],
    "scheduler": ["src/base"],
    "operator": ["src/base", "src/http", "src/kube", "src/prom", "scheduler"],
    "cli": ["src/base", "src/http", "src/kube"],
    "bench": ["src/base", "src/http", "src/kube", "src/prom", "src/pipeline", "src/transport", "src/executor", "scheduler"],
}
BANNED_NAME = re.compile(r"(?i)(utils?|helpers?|common|manager)$")
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def tracked_files():
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [pathlib.Path(n) for n in names if n and (ROOT / n).is_file()]


def folder_of(path):
    for folder in DEPENDENCIES:
        if str(path).startswith(folder + "/"):
            return folder
    return None


def check_dependency_direction(path, lines):
    """Dependencies point one way (docs/designs/first-slice.md section 1)."""
    here = folder_of(path)
    if here is None:
        return
    for number, line in enumerate(lines, 1):
        match = re.match(r'#include "([^"]+)"', line)
        target = folder_of(match.group(1)) if match else None
        if target and target != here and target not in DEPENDENCIES[here]:
            yield number, f"{here} must not include {target}"


def check_file_length(path, lines):
    if len(lines) > FILE_LINES_MAX:
        yield len(lines), f"{len(lines)} lines, more than {FILE_LINES_MAX}: split it by idea"


def check_names(path, lines):
    if BANNED_NAME.search(path.stem.replace("_test", "")):
        yield 1, "a file is named for its idea, not Utils, Helper, Common or Manager"
    for number, line in enumerate(lines, 1):
        match = re.match(r"\s*(?:class|struct)\s+(\w+)", line)
        if match and BANNED_NAME.search(match.group(1)):
            yield number, f"{match.group(1)}: name the concept"


def check_unfinished(path, lines):
    if path.name == "tidy.py":
        return
    for number, line in enumerate(lines, 1):
        if UNFINISHED.search(line):
            yield number, "unfinished work belongs into an issue, not into a comment"


def check_header_guard(path, lines):
    if path.suffix == ".h" and "#pragma once" not in lines:
        yield 1, "a header begins with #pragma once"


def cpp_functions(lines):
    """(first line, length) of C++ function bodies, by brace matching; namespaces, classes and enums are not functions."""
    stack = []
    for number, line in enumerate(lines, 1):
        text = re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|//.*', "", line)
        for character in text:
            if character == "{":
                opening = " ".join(lines[max(0, number - 4):number])
                scope = re.search(r"\b(namespace|class|struct|enum|union|extern)\b[^;(){}]*\{[^{}]*$", opening)
                stack.append((number, bool(scope)))
            elif character == "}" and stack:
                start, is_scope = stack.pop()
                inside_function = any(not scope for _, scope in stack)
                if not is_scope and not inside_function:
                    yield start, number - start + 1


def python_functions(lines):
    start, indent = None, 0
    for number, line in enumerate(lines + ["end"], 1):
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        if start is not None and depth <= indent and not line.lstrip().startswith((")", "]", "#")):
            yield start, number - start
            start = None
        if start is None and re.match(r"\s*(async )?def ", line):
            start, indent = number, depth


def check_function_length(path, lines):
    if re.search(r"_test\.(cc|py)$", path.name) or path.name.startswith("test_"):
        return
    functions = python_functions(lines) if path.suffix == ".py" else cpp_functions(lines)
    for start, length in functions:
        if length > FUNCTION_LINES_MAX:
            yield start, f"a function of {length} lines, more than {FUNCTION_LINES_MAX}"


CODE_CHECKS = [check_dependency_direction, check_file_length, check_names, check_unfinished, check_header_guard, check_function_length]


def main():
    violations = 0
    for path in tracked_files():
        if path.suffix not in (".h", ".cc", ".py", ".sh"):
            continue
        lines = (ROOT / path).read_text(errors="replace").split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        checks = CODE_CHECKS if path.suffix != ".sh" else [check_file_length, check_names, check_unfinished]
        for check in checks:
            for number, message in check(path, lines):
                print(f"{path}:{number}: {message}")
                violations += 1
    print(f"tidy: {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
