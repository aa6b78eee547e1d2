"""
Many customers at once
======================

An energy supplier wants to send each of its customers one honest sentence: what would bring *your*
bill down by a tenth? An analyst asks for all of them in one call, and then wants to see what the
answers have in common.
"""

# %%
# Customers have numbers, and these are the table's index.

import numpy as np
import pandas as pd

rng = np.random.default_rng(5)
n = 1200
homes = pd.DataFrame(
    {
        "people": rng.choice([1, 2, 3, 4, 5], n, p=[0.3, 0.34, 0.16, 0.14, 0.06]),
        "area": rng.normal(95, 30, n).clip(25, 220).round(),
        "room_temperature": rng.normal(21, 1.2, n).clip(17, 25).round(1),
        "fridge": rng.choice(["new", "old", "very old"], n, p=[0.45, 0.4, 0.15]),
        "tariff": rng.choice(["basic", "green", "night"], n),
        "washes_hot": rng.random(n) < 0.5,
        "solar_kw": np.where(rng.random(n) < 0.25, rng.integers(1, 9, n), 0),
    },
    index=pd.Index(rng.permutation(np.arange(70000, 70000 + n)), name="customer"),
)
use = 500 + 420 * homes["people"] + 9 * homes["area"] + 130 * (homes["room_temperature"] - 19)
use += homes["fridge"].map({"new": 0, "old": 180, "very old": 420}) + 160 * homes["washes_hot"]
use -= 210 * homes["solar_kw"]
cents = homes["tariff"].map({"basic": 34, "green": 35, "night": 32})
bill = use.clip(lower=300) * cents / 100 + rng.normal(0, 25, n)
print(homes.head(3).to_string())

# %%
from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

encode = make_column_transformer(
    (OrdinalEncoder(), ["fridge", "tariff"]),
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
model = make_pipeline(encode, LGBMRegressor(n_estimators=150, verbose=-1, random_state=0))
model.fit(homes, bill)

# %%
# One call
# --------
# Nobody gets rid of people or rooms to save energy, the room may become two degrees cooler at most, and
# an advice of more than two things is not read.

import bayescfx as cfx

space = (
    cfx.Space.from_data(homes, kinds={"fridge": "very old < old < new"})
    .fix("people", "area")
    .only_up("fridge")
    .move({"room_temperature": (-2, 0), "solar_kw": (0, 2)})
    .require("washes_hot <= 1")
    .steps({"room_temperature": 0.5})
    .max_changes(2)
)
many = cfx.explain_many(model, homes.head(60), space, cfx.at_most(percent=10), rng=0)
print(many)
