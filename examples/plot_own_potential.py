"""
Just in time: your own potential
================================

A planner ships parts to a factory that wants them after 48 hours. A little early
is fine and means a storage fee; late stops the line. No ready-made target says
that: ``reach(48)`` thinks that an hour late is as good as an hour early, and
``at_most(48)`` that two days early is as good as just in time. So he says it
himself.
"""

# %%
# Past shipments
# --------------

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

rng = np.random.default_rng(2)
n = 1500
shipments = pd.DataFrame(
    {
        "km": rng.gamma(3, 350, n).clip(50, 4000).round(),
        "carrier": rng.choice(["road", "rail", "air"], n, p=[0.6, 0.25, 0.15]),
        "customs": rng.choice(
            ["none", "standard", "express"], n, p=[0.4, 0.4, 0.2]
        ),
        "stops": rng.integers(0, 7, n),
        "pallets": rng.integers(1, 30, n),
        "leaves_at": rng.integers(0, 24, n),
    }
)
speed = shipments["carrier"].map({"road": 45, "rail": 30, "air": 220})
hours = (
    4
    + shipments["km"] / speed
    + 2.5 * shipments["stops"]
    + 0.3 * shipments["pallets"]
)
hours += shipments["customs"].map({"none": 0, "standard": 18, "express": 5})
hours += 6 * np.sin((shipments["leaves_at"] - 9) / 24 * 2 * np.pi)
hours += rng.normal(0, 1.5, n)

encode = make_column_transformer(
    (OneHotEncoder(), ["carrier", "customs"]), remainder="passthrough"
)
boosted = GradientBoostingRegressor(n_estimators=300, random_state=0)
model = make_pipeline(encode, boosted).fit(shipments, hours)

# %%
# A potential
# -----------
# A potential is an object with ``value`` and ``slope``, functions of the model's
# output. It should be highest where we want to be and fall slowly, so that there
# is a direction to follow from afar.


class JustInTime:
    """Best at 48 hours; an hour late is as bad as five hours early."""

    peak = 1.0

    def _z(self, y):
        late = np.asarray(y, dtype=float) - 48.0
        scale = np.where(late > 0, 2.0, 10.0)
        return late / scale, scale

    def value(self, y):
        z, _ = self._z(y)
        return 1 / (1 + z**2)

    def slope(self, y):
        z, scale = self._z(y)
        return -2 * z / scale / (1 + z**2) ** 2


# %%
# The shipment
# ------------
# What may be arranged: another carrier, customs, fewer stops, another hour of the
# day, on a clock.

import bayescfx as cfx

space = (
    cfx.Space.from_data(
        shipments, kinds={"leaves_at": cfx.Integer(0, 23, cyclic=True)}
    )
    .fix("km", "pallets")
    .only_down("stops")
    .require("customs != 'none'", label="it crosses a border")
    .cost(per_feature={"carrier": 3})
)
shipment = pd.Series(
    {
        "km": 1350.0,
        "carrier": "road",
        "customs": "standard",
        "stops": 4,
        "pallets": 12,
        "leaves_at": 16,
    }
)
targets = {
    "reach": cfx.reach(48),
    "at most": cfx.at_most(48),
    "just in time": JustInTime(),
}
answers = {
    name: cfx.explain(model, shipment, space, target, n=2, rng=0)
    for name, target in targets.items()
}
for name, answer in answers.items():
    print(f"{name}:")
    for found in answer.counterfactuals:
        print(f"  {found.output:.1f} h: {found.changes}")

# %%
# What was accepted in each case, and what the search saw of the model:

import matplotlib.pyplot as plt

from bayescfx import plots

figure, axes = plt.subplots(1, 3, figsize=(9, 2.8), layout="constrained")
for (name, answer), ax in zip(answers.items(), axes, strict=True):
    plots.potential(answer, ax)
    ax.set_xlabel(f"hours ({name})")
    ((low, high),) = answer.accepted
    print(f"{name}: {low:.1f} to {high:.1f} hours are accepted")
