"""The paper's figures, tables and claims, recomputed with the public API of `bayescfx`.

``python -m experiments`` runs everything and writes ``docs/reproduction.md``; see ``--help``.
"""

import os

# One thread per process: the same numbers on every machine, and two processes don't compete.
# Linear algebra libraries read this when they are first loaded, hence here.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
