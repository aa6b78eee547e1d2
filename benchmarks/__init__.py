"""Benchmarks of speed, model rows and distance, against targets and other libraries.

Importing this package limits numerical libraries to one thread, so import it before NumPy.
"""

import os

THREAD_LIMITS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

for _name in THREAD_LIMITS:
    os.environ[_name] = "1"
