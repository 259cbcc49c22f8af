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

# A folder may include, or import, from the folders named here, and from itself. The longest prefix of a path is its folder. Tests (x_test.cc, testing/, tests/) may use all of their top folder.
SRC = ["src/base", "src/http", "src/kube", "src/prom", "src/pipeline", "src/object_store", "src/cache", "src/cache/order", "src/transport", "src/executor"]
CORE = ["scheduler/model", "scheduler/estimate", "scheduler/allocate", "scheduler/decide"]
SIMULATOR = "scheduler/simulator"
CLIENT = "python/sluice"
CLIENT_FOLDERS = ["base", "media", "stores", "shipping", "lowering", "cache", "executor", "feeder", "makers", "loader", "explain"]


def of_client(*folders):
    return [f"{CLIENT}/{folder}" for folder in folders]


DEPENDENCIES = {
    "src/base": [],
    "src/http": ["src/base"],
    "src/kube": ["src/base", "src/http"],
    "src/prom": ["src/base", "src/http"],
    "src/pipeline": ["src/base"],
    "src/object_store": ["src/base", "src/http", "src/pipeline"],
    "src/cache": ["src/base", "src/cache/order", "src/pipeline", "src/transport"],
    "src/cache/order": ["src/base"],
    "src/cache/policies": ["src/base", "src/cache/order"],
    "src/transport": ["src/base"],
    "src/executor": ["src/base", "src/pipeline", "src/transport"],
    "worker-image": ["src/base", "src/http", "src/kube", "src/pipeline", "src/object_store", "src/cache", "src/transport", "src/executor"],
    "scheduler/model": ["src/base"],
    "scheduler/estimate": ["src/base", *CORE[:1]],
    "scheduler/allocate": ["src/base", *CORE[:2]],
    "scheduler/decide": ["src/base", *CORE[:3]],
    "scheduler/testing": ["src/base", *CORE],
    "scheduler/tests": ["src/base", *CORE, "scheduler/testing"],
    f"{SIMULATOR}/world": ["src/base", "src/cache/policies", "scheduler/model"],
    f"{SIMULATOR}/input": ["src/base", f"{SIMULATOR}/world"],
    f"{SIMULATOR}/policies": ["src/base", *CORE],
    f"{SIMULATOR}/report": ["src/base", "scheduler/model", f"{SIMULATOR}/world", f"{SIMULATOR}/input", f"{SIMULATOR}/policies"],
    f"{SIMULATOR}/command": ["src/base", "scheduler/model", *(f"{SIMULATOR}/{part}" for part in ("world", "input", "policies", "report"))],
    "operator/config": ["src/base", "scheduler/model"],
    "operator/api": ["src/base", "src/kube", "scheduler/model"],
    "operator/observe": ["src/base", "src/kube", "src/prom", "scheduler/model", "operator/config", "operator/api"],
    "operator/decide": ["src/base", "src/kube", *CORE, "operator/api", "operator/observe"],
    "operator/act": ["src/base", "src/kube", "scheduler/model", "operator/config", "operator/api", "operator/decide"],
    "operator/publish": ["src/base", "src/http", "src/kube", "src/prom", *CORE, "operator/api", "operator/decide"],
    "operator/fault_simulation": [*SRC[:4], *CORE, "scheduler/testing", "operator"],
    "operator": [*SRC[:4], *CORE],  # control_plane and main join the parts
    "cli": ["src/base", "src/http", "src/kube"],
    "bench": [*SRC, "src/cache/policies", *CORE, "scheduler/testing", "operator"],
    CLIENT: of_client(*CLIENT_FOLDERS),  # What users import and run.
    f"{CLIENT}/base": [],
    f"{CLIENT}/media": of_client("base"),
    f"{CLIENT}/stores": of_client("base"),
    f"{CLIENT}/shipping": of_client("base", "media"),
    f"{CLIENT}/lowering": of_client("base", "stores", "shipping"),
    f"{CLIENT}/cache": of_client("base", "shipping"),
    f"{CLIENT}/executor": of_client("base", "shipping", "cache"),
    f"{CLIENT}/feeder": of_client("base", "shipping", "executor"),
    f"{CLIENT}/makers": of_client("base", "shipping", "executor", "feeder"),
    f"{CLIENT}/loader": of_client("base", "shipping", "lowering", "executor", "feeder", "makers"),
    f"{CLIENT}/explain": of_client("base", "media", "shipping", "lowering", "cache", "executor", "feeder", "makers"),
}
BANNED_NAME = re.compile(r"(?i)(utils?|helpers?|common|manager)$")
HEADLESS = re.compile(r"(?i)\b(nobody|somebody|whoever) \w")  # In prose; as a value, such a word ends before a quote.
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")


def tracked_files():
    names = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [pathlib.Path(n) for n in names if n and (ROOT / n).is_file()]


def folder_of(path):
    """The longest prefix of DEPENDENCIES: a folder, or a file without its suffix."""
    matches = [folder for folder in DEPENDENCIES if str(path).startswith((folder + "/", folder + ".", folder + "_test."))]
    return max(matches, key=len, default=None)


def is_test(path):
    return str(path).endswith("_test.cc") or "/testing/" in str(path) or "/tests/" in str(path)


def may_include(path, target):
    here, top = folder_of(path), str(path).split("/")[0]
    allowed = [here, *DEPENDENCIES[here]]
    if is_test(path):  # a test looks at its part through the whole of its top folder
        parts = [folder for folder in DEPENDENCIES if folder.split("/")[0] == top and top != "src"]
        allowed += parts + [use for part in parts for use in DEPENDENCIES[part]]
    elif here == top:
        allowed += [folder for folder in DEPENDENCIES if folder.startswith(top + "/")]
    return target in allowed or "operator" in DEPENDENCIES[here] and target.startswith("operator")


IMPORT = re.compile(r'(?:\s*(?:from|import)\s+|.*\bimport_module\(")sluice\b([\w.]*)')


def included(path, line):
    """What a line of C++ includes, or a line of the client imports, also late or for its types alone."""
    if str(path).startswith(CLIENT + "/"):
        match = IMPORT.match(line)
        return f"{CLIENT}{match.group(1).replace('.', '/')}/" if match else None
    match = re.match(r'#include "([^"]+)"', line)
    return match.group(1) if match else None


def check_dependency_direction(path, lines):
    """Dependencies point one way (docs/designs/protocols.md section 1)."""
    if folder_of(path) is None:
        return
    for number, line in enumerate(lines, 1):
        named = included(path, line)
        target = folder_of(named) if named else None
        if target and not may_include(path, target):
            yield number, f"{folder_of(path)} must not include {target}"


def check_package(path, lines):
    """Importing a folder of the client imports nothing: an executor's child starts with what it needs."""
    if path.name == "__init__.py" and str(path).startswith(CLIENT + "/") and str(path.parent) != CLIENT and len(lines) != 1:
        yield 1, "a folder's __init__.py is one line, its concept"


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


def check_subjects(path, lines):
    """The subject of a sentence is a domain noun, which a reader can look up."""
    for number, line in enumerate(lines, 1):
        if path.name not in ("tidy.py", "tidy_test.py") and (match := HEADLESS.search(line)):
            yield number, f"'{match.group(1)}': name the process, the user or the object that is meant"


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


# "/spec/replicas" as a JSON pointer, "sluice.dev/job" as a label's name.
API_NAME = re.compile(r'"/(metadata|spec|status)[/"]|"[\w.-]*(sluice\.dev|kubernetes\.io|kueue\.x-k8s\.io|prometheus\.io)(/|~1)')


def check_api_names(path, lines):
    """operator/api is the only part of the operator that knows where in an object a field is, and what a label is called."""
    if not str(path).startswith("operator/") or str(path).startswith("operator/api/") or is_test(path):
        return
    for number, line in enumerate(lines, 1):
        if API_NAME.search(line) or '#include "operator/api/fields.h"' in line:
            yield number, "a JSON path or a label's name: read it through operator/api"


# pod["spec"], pod.at("spec"), spec.contains("hostNetwork"), member(pod, "spec"): a member by its literal name. {"spec", ...}: a pair of an object.
MEMBER = re.compile(r'\["|\.(at|value|contains|erase|count)\("|\bmember\([^"]*, "')
PAIR = re.compile(r'\{"(apiVersion|kind|metadata|labels|annotations|ownerReferences|spec|status|conditions|data|template|selector|containers|name|value|env|ports|resources|requests|limits|cpu|memory)", ')
OWN_JSON = {
    "operator/publish/": "our own pages",
    "operator/decide/learnt_jobs": "our own entries of a ConfigMap",
    "operator/fault_simulation/": "plays Kubernetes' own controllers, and writes what they write",
}


def check_object_members(path, lines):
    """operator/api is the only part of the operator that reads or writes members of a Kubernetes object by name."""
    if not str(path).startswith("operator/") or str(path).startswith(("operator/api/", *OWN_JSON)) or is_test(path):
        return
    for number, line in enumerate(lines, 1):
        code = re.sub(r"//.*", "", line)
        if MEMBER.search(code) or PAIR.search(code):
            yield number, "a member of an object by its name: read it by a reader of operator/api, write it by a draft"


TEST_FILES_TOGETHER = int(re.search(r"UNITY_BUILD_BATCH_SIZE (\d+)", (ROOT / "CMakeLists.txt").read_text())[1])
TEST_FUNCTION = re.compile(r"(?!using |return |TEST_CASE|SCENARIO|struct |class |template|friend )[A-Za-z_][\w:<>,&* ]*[ &*](\w+)\(")


def functions_of(path):
    return {found[1] for line in path.read_text().split("\n") if (found := TEST_FUNCTION.match(line)) and "::" + found[1] not in line}


def check_compiled_together(path, lines):
    """Files of a test program are compiled together. Two functions of one name would be overloads: each file could call the other one's, and no compiler tells."""
    for program in re.finditer(r"sluice_test\((\w+)\s(.*?)\)", "\n".join(lines), re.DOTALL):
        files = [name for name in program[2].split("LIBS")[0].split() if name.endswith(".cc")]
        for first in range(0, len(files), TEST_FILES_TOGETHER):
            seen = {}
            for name in files[first : first + TEST_FILES_TOGETHER]:
                for function in sorted(functions_of(ROOT / path.parent / name)):
                    if function in seen:
                        line = next(number for number, text in enumerate(lines, 1) if re.search(rf"(^|\s){re.escape(name)}(\s|$)", text))
                        yield line, f"{name} and {seen[function]}, compiled together, have a function {function} each"
                    seen.setdefault(function, name)


CODE_CHECKS = [check_api_names, check_object_members, check_dependency_direction, check_package, check_file_length, check_names, check_unfinished, check_subjects, check_header_guard, check_function_length]
CHECKS = dict.fromkeys((".h", ".cc", ".py"), CODE_CHECKS) | {".sh": [check_file_length, check_names, check_unfinished, check_subjects], ".md": [check_subjects], ".txt": [check_compiled_together]}


def main():
    violations = 0
    for path in tracked_files():
        if path.suffix not in CHECKS:
            continue
        lines = (ROOT / path).read_text(errors="replace").split("\n")
        if lines and lines[-1] == "":
            lines.pop()
        for check in CHECKS[path.suffix]:
            for number, message in check(path, lines):
                print(f"{path}:{number}: {message}")
                violations += 1
    print(f"tidy: {violations} violations")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
