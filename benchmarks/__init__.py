"""Measurements: how fast, how few model calls, how near, against aims and against peers.

Importing this package limits numerical libraries to one thread, so import it before NumPy.
"""

import os

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

for _name in THREAD_LIMITS:
    os.environ[_name] = "1"
