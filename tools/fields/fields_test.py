"""docs/scheduling.md tells of every field of snapshot and plan: where the operator sets it, where it is acted on, which test shows it."""

import re

import fields
import pytest

ROWS = fields.rows("### Fields")


def test_every_declared_field_has_exactly_one_row():
    told = sorted(row.field for row in ROWS)
    assert told == sorted(fields.declared())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.field)
def test_a_row_names_files_that_have_the_field(row):
    set_by, acted_on_by, shown_by = row.cells
    struct = row.field.partition("::")[0]
    source = (fields.ROOT / set_by).read_text()
    assert fields.names(set_by, row.field) or re.search(rf"\b{struct}\{{", source), f"{set_by} does not set it"
    assert fields.names(acted_on_by, row.field), f"{acted_on_by} does not use it"
    assert re.fullmatch(r"e2e/scenarios/\w+_test\.py", shown_by), "a test on the real cluster shows it"
    assert fields.shows(shown_by, row.field), f"{shown_by} does not look at it"


@pytest.mark.parametrize("field", fields.declared())
def test_the_page_of_the_operator_has_every_field(field):
    assert fields.writes(field), f"none of {fields.WRITERS} writes {fields.published_name(field)} of its struct"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.field)
def test_what_the_operator_does_not_set_comes_from_the_scheduler_and_ends_in_the_operator(row):
    set_by, acted_on_by, _ = row.cells
    assert set_by.startswith(("operator/", "scheduler/allocate/", "scheduler/decide/"))
    assert acted_on_by.startswith(("operator/", "scheduler/"))


def test_an_undeclared_field_is_not_mistaken_for_one():
    assert "Node::allocatable_millicores" in fields.declared()
    assert not any(field.startswith("EstimatorMemory::") for field in fields.declared())
