"""
Many customers at once
======================

An energy supplier wants to send each of its customers one honest sentence: what
would bring *your* bill down by a tenth? An analyst asks for all of them in one
call, and then wants to see what the answers have in common.
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
        "room_temp": rng.normal(21, 1.2, n).clip(17, 25).round(1),
        "fridge": rng.choice(["new", "old", "very old"], n, p=[0.45, 0.4, 0.15]),
        "tariff": rng.choice(["basic", "green", "night"], n),
        "washes_hot": rng.random(n) < 0.5,
        "roof": rng.choice(["own", "shared"], n),
        "solar_kw": np.where(rng.random(n) < 0.5, rng.integers(1, 9, n), 0),
    },
    index=pd.Index(rng.permutation(np.arange(70000, 70000 + n)), name="customer"),
)
homes.loc[homes["roof"] == "shared", "solar_kw"] = 0
use = 500 + 420 * homes["people"] + 9 * homes["area"]
use += 130 * (homes["room_temp"] - 19) + 160 * homes["washes_hot"]
use += homes["fridge"].map({"new": 0, "old": 180, "very old": 420})
use -= 210 * homes["solar_kw"]
cents = homes["tariff"].map({"basic": 34, "green": 35, "night": 32})
bill = use.clip(lower=300) * cents / 100 + rng.normal(0, 25, n)
print(homes.head(3).to_string())

# %%
# The model of the bill, in euros a year:

from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

encode = make_column_transformer(
    (OrdinalEncoder(), ["fridge", "tariff", "roof"]),
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
model = make_pipeline(
    encode, LGBMRegressor(n_estimators=150, n_jobs=1, verbose=-1, random_state=0)
)
model = model.fit(homes, bill)

# %%
# One call
# --------
# The number of people and rooms is fixed. A room may become two degrees
# cooler at most, two kilowatts fit on the customer's own roof, and each letter
# advises at most two changes.

import bayescfx as cfx

space = (
    cfx.Space.from_data(homes, kinds={"fridge": "very old < old < new"})
    .fix("people", "area", "roof")
    .only_up("fridge")
    .move({"room_temp": (-2, 0), "solar_kw": (0, 2)})
    .steps({"room_temp": 0.5})
    .require(
        "roof == 'shared' -> solar_kw <= 0",
        label="solar needs a roof of one's own",
    )
    .max_changes(2)
    .cost(per_feature={"solar_kw": 3, "fridge": 2})  # what has to be bought
)
asked = homes.head(60)
many = cfx.explain_many(model, asked, space, cfx.decrease(percent=10), rng=0)
print(f"{sum(answer.reached for answer in many)} of {len(many)} reached")

# %%
# The sentence in each letter
# ---------------------------
# ``summary`` has a line per customer, under the customer's own number.

summary = many.summary()
letters = summary[["status", "output", "best_output", "changes"]].round(0)
letters.head(8)

# %%
# For which customers is a tenth out of reach, and what came nearest?

letters[summary["status"] != "reached"]

# %%
# What the answers have in common
# -------------------------------
# How often each feature moves, and how far.

from bayescfx import plots

plots.movements(many)

# %%
# Check all answers: every row is scored and tested once more.

print(sum(answer.verify(model) for answer in many), "of", len(many), "hold")
