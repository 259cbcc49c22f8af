"""What a script sets in its modules is seen by an interpreter that imports them anew."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest

from sluice import module_values

PACKAGE = Path(__file__).resolve().parent.parent
MODULE = """
SIZE, TABLE, options, database, is_open = 1, {"a": 1}, None, None, False
def size(): return SIZE
"""
SET = {
    "numbers": ("module.SIZE = 5", "5 {'a': 1} None False"),
    "members of containers": ("module.TABLE['b'] = [2]", "1 {'a': 1, 'b': [2]} None False"),
    "options": ("module.options = argparse.Namespace(crop=3)", "1 {'a': 1} Namespace(crop=3) False"),
    "what is large": ("module.TABLE = list(range(5000))", "1 {'a': 1} None False"),
    "what is open": ("module.database, module.is_open = open(__file__), True", "1 {'a': 1} None False"),
    "new names": ("module.added = 1", "1 {'a': 1} None False"),
}
SHOWN = "print(module.size(), module.TABLE, module.options, module.is_open)"


@pytest.mark.parametrize("case", SET)
def test_values_of_a_module_of_the_users(case, tmp_path, monkeypatch):
    statement, shown = SET[case]
    (tmp_path / "module_of_a_script.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    import module_of_a_script as module

    exec(statement, {"module": module, "argparse": argparse, "__file__": __file__})
    values = module_values.capture()
    del sys.modules["module_of_a_script"]
    assert "pytest" not in values and "json" not in values and "sluice.settings" not in values
    own = {"module_of_a_script": values["module_of_a_script"]}  # Those of all tests are more than a command line holds.
    program = f"import module_of_a_script as module; from sluice import module_values; module_values.enter({own!r}); {SHOWN}"
    run = subprocess.run([sys.executable, "-c", program], env={"PYTHONPATH": f"{tmp_path}:{PACKAGE}"}, capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == shown, run.stderr
