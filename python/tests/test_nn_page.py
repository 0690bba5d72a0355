# SPDX-License-Identifier: MIT
"""The page of partita.nn: its programs run, one after the other, and print what it says."""
import contextlib
import io
import pathlib
import re

import pytest

pytest.importorskip("torch", exc_type=ImportError)

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/layers-in-python.md"


def test_page():
    programs = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    programs = [program for program in programs if "partita.jax" not in program]  # that of test_jax.py
    assert len(programs) == 3
    names = {}
    for program in programs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(program, names)
        assert printed.getvalue().splitlines() == re.findall(r"# prints: (.*)$", program, re.M)
