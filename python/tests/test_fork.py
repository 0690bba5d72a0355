# SPDX-License-Identifier: MIT
"""Processes that are made by fork() at any moment, while other threads of the parent are in the package."""
import pathlib
import re
import subprocess
import sys

import partita

LOAD = pathlib.Path(__file__).with_name("fork_load.py")


def test_forks_at_random_moments(tmp_path):
    subprocess.run([sys.executable, str(LOAD), str(tmp_path)], check=True, timeout=600)


def test_every_lock_is_renewed_in_a_child():
    """Locks of the package are made by one function."""
    folder = pathlib.Path(partita.__file__).parent
    made = [path.relative_to(folder) for path in folder.rglob("*.py")
            if re.search(r"\b(RLock|Lock|Condition|Semaphore|Event|Barrier)\(", path.read_text())]
    assert made == [pathlib.Path("_fork.py")]
