#!/usr/bin/env python3
"""The fields of snapshot and plan, as the code declares them, and the table of docs/scheduling.md that tells of them."""

import dataclasses
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = ("scheduler/model/snapshot.h", "scheduler/model/plan.h")
PAGE = "docs/scheduling.md"
# What writes the page that people and end-to-end tests read.
WRITERS = ("operator/publish/snapshot_page.cc", "operator/publish/plan_page.cc")
OTHER_NAMES = {"JobPlan::id": "name"}
# What the estimator keeps for itself; it passes through the operator as Job::memory.
OWN_STATE = {"GrowthRecord", "ReadLimit", "SteadySpell", "FeederSpell", "EstimatorMemory"}

STRUCT = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.M | re.S)
FIELD = re.compile(r"^  (?!friend|using|static)[\w:<>, ]+?[ >](\w+)(?: = [^;]*)?;", re.M)


@dataclasses.dataclass(frozen=True)
class Row:
    field: str  # Struct::name
    cells: tuple


def declared():
    """Every field as Struct::name, in the order of the headers."""
    fields = []
    for header in HEADERS:
        for name, body in STRUCT.findall((ROOT / header).read_text()):
            if name not in OWN_STATE:
                fields += [f"{name}::{field}" for field in FIELD.findall(re.sub(r"//[^\n]*", "", body))]
    return fields


def rows(heading):
    """The rows below a heading of the page; the first column is the field."""
    section = (ROOT / PAGE).read_text().partition(f"\n{heading}\n")[2].partition("\n#")[0]
    found = []
    for line in section.splitlines():
        cells = [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        if re.fullmatch(r"\w+::\w+", cells[0]):
            found.append(Row(cells[0], tuple(cells[1:])))
    return found


def published_name(field):
    first, *others = field.partition("::")[2].split("_")
    return OTHER_NAMES.get(field) or first + "".join(word.capitalize() for word in others)


def writes(field):
    """Whether a function that is given the field's struct writes its published name. The page has milliCores in places, as Kubernetes."""
    struct = field.partition("::")[0]
    takes = re.compile(rf"scheduler::{struct}&" if struct not in ("Plan", "JobPlan") else r"decide::(JobDecision|Round)&|scheduler::JobPlan&")
    functions = [part for path in WRITERS for part in re.split(r"\n(?=[\w:<>*]+ [\w:]+\()", (ROOT / path).read_text())]
    return any(f'"{published_name(field)}"'.lower() in part.lower() for part in functions if takes.search(part))


def shows(path, field):
    """Whether a test on the real cluster looks the field up by its name, on the page."""
    return f'"{field}"' in (ROOT / path).read_text()


def names(path, field):
    """Whether a file has the field's name as a word: the C++ one, or its form in JSON."""
    first, *others = field.partition("::")[2].split("_")
    forms = "_".join([first, *others]), first + "".join(word.capitalize() for word in others)
    return re.search(rf"\b({'|'.join(forms)})\b", (ROOT / path).read_text()) is not None
