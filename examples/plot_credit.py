"""
Credit: what would turn a no into a yes
=======================================

A loan officer has to tell an applicant why the model says no, and what would make
it say yes. The answer must keep the bank's rules, must be something the applicant
can do, and must hold when it is checked later.
"""

# %%
# Applications of the past
# ------------------------
# Text, whole numbers, and gaps: not all applicants stated how long they have worked.

import numpy as np
import pandas as pd

rng = np.random.default_rng(3)
n = 5000
past = pd.DataFrame(
    {
        "age": rng.integers(19, 70, n),
        "income": rng.lognormal(7.9, 0.35, n).round(-1),  # a month, after tax
        "employed_years": rng.gamma(1.5, 4.0, n).round(),
        "housing": rng.choice(
            ["rent", "own", "with parents"], n, p=[0.55, 0.33, 0.12]
        ),
        "purpose": rng.choice(["car", "furniture", "education", "debts"], n),
        "amount": rng.lognormal(9.1, 0.5, n).round(-2),
        "months": rng.choice([12, 24, 36, 48, 60, 72], n),
        "open_loans": rng.choice([0, 1, 2, 3], n, p=[0.5, 0.3, 0.15, 0.05]),
    }
)
burden = past["amount"] / past["months"] / past["income"]
odds = 3.2 - 9 * burden - 0.7 * past["open_loans"] + 0.06 * past["employed_years"]
odds += 0.6 * (past["housing"] == "own") - 0.7 * (past["purpose"] == "debts")
odds += 0.25 * (past["income"] - 2700) / 1000 - 0.012 * past["months"]
paid = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "repaid", "defaulted")
past.loc[rng.random(n) < 0.12, "employed_years"] = np.nan
print(past.head(3).to_string())

# %%
# The bank's model predicts the probability that a loan is repaid.

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

encode = make_column_transformer(
    (OneHotEncoder(sparse_output=False), ["housing", "purpose"]),
    remainder="passthrough",
)
clf = make_pipeline(
    encode, HistGradientBoostingClassifier(max_leaf_nodes=6, random_state=0)
)
clf = clf.fit(past, paid)


# %%
# The applicant
# -------------
# She wants a car. The bank lends if the model gives at least 0.8 to *repaid*.

import bayescfx as cfx

applicant = pd.Series(
    {
        "age": 27,
        "income": 2100.0,
        "employed_years": np.nan,
        "housing": "rent",
        "purpose": "car",
        "amount": 14000.0,
        "months": 36,
        "open_loans": 2,
    }
)
repaid = cfx.probability(clf, "repaid")
space = (
    cfx.Space.from_data(past)
    .allow("amount", "months", "open_loans")
    .only_down("amount", "open_loans")
    .between(
        {"months": (None, 60), "amount": (10000, None)}
    )  # the car costs that much
    .steps({"amount": 500, "months": 12})
    .require(
        "amount / months <= 0.2 * income",
        label="a rate of at most a fifth of the income",
    )
)
answer = cfx.explain(repaid, applicant, space, cfx.at_least(0.8), n=3, rng=0)
print(answer)

# %%
# The best answer as a plot. Effects are the contributions of each change. The bank
# asked for three answers, but only these two differ enough from each other.

from bayescfx import plots

plots.change_chart(answer)

# %%
# Out of reach, and the binding constraint
# ----------------------------------------
# If she keeps her two loans and borrows for three years at most, is there a way?

strict = space.fix("open_loans").between({"months": (None, 36)})
no = cfx.explain(repaid, applicant, strict, cfx.at_least(0.8), rng=0)
no

# %%
# So few rows are allowed that all of them were scored: the verdict is a fact. The
# binding constraints are computed, because the model can be read. The limit of
# three years is not among them. A test: five years, both loans kept.

looser = cfx.explain(
    repaid, applicant, space.fix("open_loans"), cfx.at_least(0.8), rng=0
)
print(looser.status, looser.best)

# %%
# Still out of reach. Both answers above pay off both loans, and that is what the
# officer will tell her.

# %%
# Saved, and checked later
# ------------------------
# The answer goes into her file, as JSON. An auditor reads it, has every row
# scored again by the model, and every rule and limit tested again.

file = answer.to_json()
later = cfx.Explanation.from_json(file)
print(f"{len(file) / 1000:.0f} kB; holds: {later.verify(repaid)}")
print(later.best.row.to_string())
