"""
A simulator that takes a second per row
=======================================

A process engineer runs a fermenter. Her simulator of it is right, but slow.
Today's recipe is expected to give some product; she wants a quarter more, and has
no time for a thousand runs.
"""

# %%
# The simulator
# -------------
# Cells eat sugar, grow and make the product; sugar is fed, heat and hunger slow
# them down. Three differential equations, solved by SciPy. That takes some
# milliseconds, so we let every run wait until a full second is over: this one is
# slow for show, the rows and seconds below are real.

import tempfile
import time
from pathlib import Path

import numpy as np
from scipy.integrate import solve_ivp

runs = []


def simulate(hours, temperature, feed, sugar, strain):
    """Return the product after so many hours, in g/l."""
    vigour, best = {"A": (0.32, 33.0), "B": (0.26, 36.5)}[strain]
    vigour *= np.exp(-(((temperature - best) / 4.5) ** 2))

    def rates(t, state):
        cells, food, product = state
        growth = (
            vigour * food / (0.5 + food + food**2 / 60)
        )  # too much sugar is a burden
        dilution = feed / (10 + feed * t)
        grown = growth * cells
        made = 0.05 * cells * food / (1 + food)
        return [
            grown - dilution * cells,
            dilution * (300 - food) - grown / 0.5 - made / 0.4,
            made + 0.2 * grown - dilution * product,
        ]

    solved = solve_ivp(
        rates, (0, hours), [0.5, sugar, 0.0], method="LSODA", rtol=1e-6
    )
    return solved.y[2, -1]


def fermenter(rows):
    """Score a table, one slow run per row."""
    outputs = []
    for row in rows.itertuples(index=False):
        start = time.monotonic()
        outputs.append(simulate(*row))
        time.sleep(max(0.0, 1.0 - (time.monotonic() - start)))
        runs.append(time.monotonic() - start)
    return np.array(outputs)


# %%
# There is no table of past runs, so the space is written by hand, in the steps in
# which the plant can be set.

import bayescfx as cfx

space = cfx.Space(
    {
        "hours": cfx.Integer(24, 48, step=2),
        "temperature": cfx.Real(28, 40, step=0.5),
        "feed": cfx.Real(0.0, 0.4, step=0.02),  # litres an hour
        "sugar": cfx.Real(10, 80, step=5),  # at the start, g/l
        "strain": cfx.Categorical(["A", "B"]),
    }
).only_down("hours")
recipe = {
    "hours": 36,
    "temperature": 33.0,
    "feed": 0.1,
    "sugar": 40.0,
    "strain": "A",
}

# %%
# Twelve runs, and not one lost
# -------------------------------
# ``budget`` counts rows. Each result of the simulator is in a file before the search
# continues; if the machine is switched off in between, the same call resumes
# where it stopped.

folder = tempfile.TemporaryDirectory()
store = Path(folder.name) / "fermenter.db"
with cfx.Evaluations.open(store, model="2025-1") as known:
    answer = cfx.explain(
        fermenter,
        recipe,
        space,
        cfx.increase(percent=25),
        budget=12,
        rng=1,
        evaluations=known,
    )
print(answer)
print(f"{len(runs)} runs took {sum(runs):.0f} s")

# %%
# The trace of the search: the potential of the best run so far.

from bayescfx import plots

plots.convergence(answer)

# %%
# The next day, another question
# ------------------------------
# The pump is worn and gives 0.12 litres an hour at most. The file is opened
# again: known rows cost nothing, but one row is run again to check that the
# simulator is still the same.

runs.clear()
worn = space.between({"feed": (None, 0.12)})
with cfx.Evaluations.open(store, model="2025-1") as known:
    print(f"{len(known)} rows known")
    other = cfx.explain(
        fermenter,
        recipe,
        worn,
        cfx.increase(percent=25),
        budget=7,
        rng=1,
        evaluations=known,
    )
print(other)
print(f"{len(runs)} runs took {sum(runs):.0f} s")

# %%
# The surrogate of the simulator after these runs, over feed and sugar. Inside
# the solid line the target is expected to be reached; dots are runs.

plots.surface(other, features=["feed", "sugar"])
folder.cleanup()
