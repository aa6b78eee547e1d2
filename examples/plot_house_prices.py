"""
House prices: what to renovate before selling
=============================================

An agency's model tells an owner what her house would fetch, and she wants
more. She can't move the house or make it younger, but she can renovate. Which
works get her at least 12 % more, with as little as possible?
"""

# %%
# The agency's table
# ------------------
# We make a table of the kind that agencies have: numbers, text, an order in
# letters, dates, and missing distances.

import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
n = 1500
states = ["needs work", "fair", "good", "renovated"]
heatings = ["gas", "oil", "district", "heat pump"]
places = ["Fields", "Hillside", "Harbour", "Old town"]
start = pd.Timestamp("2021-01-01")
houses = pd.DataFrame(
    {
        "area": rng.normal(125, 30, n).clip(45, 260).round(),
        "bathrooms": rng.choice([1, 2, 3], n, p=[0.55, 0.37, 0.08]),
        "built": rng.integers(1905, 2021, n),
        "energy": rng.choice(list("GFEDCBA"), n),
        "condition": rng.choice(states, n, p=[0.15, 0.4, 0.3, 0.15]),
        "heating": rng.choice(heatings, n, p=[0.5, 0.2, 0.15, 0.15]),
        "quarter": rng.choice(places, n),
        "station_km": rng.gamma(2.0, 1.1, n).round(1),
        "sold": start + pd.to_timedelta(rng.integers(0, 1400, n), "D"),
    }
)
level = 1800 + 250 * houses["quarter"].map(places.index)
level += 90 * houses["energy"].map("GFEDCBA".index)
level += 170 * houses["condition"].map(states.index)
level += 120 * (houses["heating"] == "heat pump")
level -= 90 * (houses["heating"] == "oil") + 60 * houses["station_km"]
level += 2.5 * (houses["built"] - 1960)
level += 0.15 * (houses["sold"] - start).dt.days
price = level * houses["area"] + 14_000 * houses["bathrooms"]
price += rng.normal(0, 12_000, n)
houses.loc[rng.random(n) < 0.1, "station_km"] = np.nan
print(houses.head(3).to_string())

# %%
# The model is a pipeline that takes the raw columns and encodes them (levels,
# dates, gaps) itself.

from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder


def days(frame):
    return (frame - start) / pd.Timedelta("1D")


encode = make_column_transformer(
    (OrdinalEncoder(), ["energy", "condition", "heating", "quarter"]),
    (FunctionTransformer(days, feature_names_out="one-to-one"), ["sold"]),
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
model = make_pipeline(
    encode, LGBMRegressor(n_estimators=200, n_jobs=1, verbose=-1, random_state=0)
)
model.fit(houses, price)
hers = houses.iloc[552]
print(hers.to_string())
print(f"\nThe model's price: {model.predict(houses.iloc[[552]])[0]:,.0f}")

# %%
# What she can do
# ---------------
# Letters and words have an order that the data don't show, so we state it. What
# she can't change is left out of ``allow``; the rest only gets better. A heat pump
# makes no sense in a badly insulated house: that is a rule, in words.

import bayescfx as cfx

orders = {
    "energy": "G < F < E < D < C < B < A",
    "condition": "needs work < fair < good < renovated",
}
space = (
    cfx.Space.from_data(houses, kinds=orders)
    .allow("area", "bathrooms", "energy", "condition", "heating")
    .only_up("energy", "condition")
    .move({"area": (0, 15), "bathrooms": (0, 1)})
    .steps({"area": 5})
    .require("heating == 'heat pump' -> energy >= 'C'")
    .cost(per_feature={"area": 6, "bathrooms": 2})  # what is expensive to build
)
print(space)

# %%
# Three ways to get there
# -----------------------

target = cfx.increase(percent=12)
answer = cfx.explain(model, hers, space, target, n=3, rng=0)
print(answer)

# %%
# The third of them as a picture, and all as a table. Each change has an *effect*, its
# share of the way; the effects add up to the whole.

from bayescfx import plots

plots.change_chart(answer, which=2)
answer.to_frame(changes_only=True).drop(columns=["valid", "potential"]).round(1)

# %%
# Her own idea
# ------------
# A neighbour swears by heat pumps. Is one enough, and may it be put in?

print(cfx.what_if(model, hers, {"heating": "heat pump"}, space, target))
