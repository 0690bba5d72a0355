# SPDX-License-Identifier: MIT
"""How partita.signal computes SciPy's functions."""
