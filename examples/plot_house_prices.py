"""
House prices: what to renovate before selling
=============================================

An owner is told by the agency's model what her house would fetch, and she wants
more. She can't move the house or make it younger, but she can renovate. Which
works get her at least 12 % more, with as little as possible?
"""

# %%
# The agency's table
# ------------------
# We make a table of the kind that agencies have: numbers, text, an order in
# letters, dates, and distances that nobody wrote down.

import numpy as np
import pandas as pd

rng = np.random.default_rng(7)
n = 1500
houses = pd.DataFrame(
    {
        "area": rng.normal(125, 30, n).clip(45, 260).round(),
        "bathrooms": rng.choice([1, 2, 3], n, p=[0.55, 0.37, 0.08]),
        "built": rng.integers(1905, 2021, n),
        "energy": rng.choice(
            list("ABCDEFG"), n, p=[0.07, 0.13, 0.2, 0.24, 0.18, 0.11, 0.07]
        ),
        "condition": rng.choice(
            ["needs work", "fair", "good", "renovated"],
            n,
            p=[0.15, 0.4, 0.3, 0.15],
        ),
        "heating": rng.choice(
            ["gas", "oil", "district", "heat pump"], n, p=[0.5, 0.2, 0.15, 0.15]
        ),
        "quarter": rng.choice(["Harbour", "Old town", "Hillside", "Fields"], n),
        "station_km": rng.gamma(2.0, 1.1, n).round(1),
        "sold": pd.Timestamp("2021-01-01")
        + pd.to_timedelta(rng.integers(0, 1400, n), "D"),
    }
)
level = 1800 + 250 * houses["quarter"].map(
    {"Harbour": 2, "Old town": 3, "Hillside": 1, "Fields": 0}
)
level += 90 * houses["energy"].map(dict(zip("GFEDCBA", range(7), strict=True)))
level += 170 * houses["condition"].map(
    {"needs work": -1, "fair": 0, "good": 1, "renovated": 2}
)
level += 120 * (houses["heating"] == "heat pump") - 90 * (
    houses["heating"] == "oil"
)
level += 2.5 * (houses["built"] - 1960) - 60 * houses["station_km"]
level += 0.15 * (houses["sold"] - pd.Timestamp("2021-01-01")).dt.days
price = (
    level * houses["area"]
    + 14_000 * houses["bathrooms"]
    + rng.normal(0, 12_000, n)
)
houses.loc[rng.random(n) < 0.1, "station_km"] = np.nan
print(houses.head(3).to_string())

# %%
# The model is a pipeline that takes the raw columns. What is done to them
# (levels, dates, gaps) is its own business.

from lightgbm import LGBMRegressor
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder


def days(frame):
    return (frame - pd.Timestamp("2021-01-01")) / pd.Timedelta("1D")


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
hers = houses.iloc[28]
print(hers.to_string())
print(f"\nThe model's price: {model.predict(houses.iloc[[28]])[0]:,.0f}")

# %%
# What she can do
# ---------------
# Letters and words have an order that only people know, so we say it. What she
# can't change is left out of ``allow``; the rest only gets better. A heat pump
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
    .cost(per_feature={"area": 6, "bathrooms": 2})  # what is dear to build
)
print(space)

# %%
# Three ways to get there
# -----------------------

wish = cfx.at_least(percent=12)
answer = cfx.explain(model, hers, space, wish, n=3, rng=0)
print(answer)

# %%
# As a table, and the third of them as a picture. Each change has an *effect*, its
# share of the way; the effects add up to the whole.

from bayescfx import plots

print(
    answer.to_frame(changes_only=True)
    .drop(columns=["valid", "potential"])
    .to_string()
)
plots.change_chart(answer, which=2)

# %%
# Her own idea
# ------------
# A neighbour swears by heat pumps. Is one enough, and may it be put in?

print(cfx.what_if(model, hers, {"heating": "heat pump"}, space, wish))
