# SPDX-License-Identifier: MIT
"""How partita.dask computes arrays of chunks."""
