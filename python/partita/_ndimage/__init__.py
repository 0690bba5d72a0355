# SPDX-License-Identifier: MIT
"""How partita.ndimage computes SciPy's functions."""
