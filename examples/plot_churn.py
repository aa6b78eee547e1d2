"""
Churn: which offer keeps a customer?
====================================

A retention manager has a classifier that says who is about to leave. For one good
customer it says so quite clearly. The manager has three offers in mind, and wants
to know whether any of them would change the model's mind, whether they are more
than is needed, and whether there is a better one.
"""

# %%
# Customers
# ---------

import numpy as np
import pandas as pd

rng = np.random.default_rng(11)
n = 4000
today = pd.Timestamp("2025-06-01")
contracts = {"monthly": 0.9, "one year": -0.4, "two years": -1.3}
customers = pd.DataFrame(
    {
        "since": today - pd.to_timedelta(rng.gamma(2, 500, n).round(), "D"),
        "contract": rng.choice(list(contracts), n, p=[0.55, 0.25, 0.2]),
        "payment": rng.choice(["card", "transfer", "invoice"], n),
        "internet": rng.choice(["fibre", "DSL", "none"], n, p=[0.45, 0.4, 0.15]),
        "support": rng.choice(["basic", "plus"], n, p=[0.7, 0.3]),
        "fee": rng.normal(48, 16, n).clip(12, 99).round(),
        "complaints": rng.poisson(0.6, n),
        "last_call_days": rng.exponential(90, n).round(),
    }
)
years = (today - customers["since"]) / pd.Timedelta("365D")
odds = customers["contract"].map(contracts) - 4.0 + 0.05 * customers["fee"]
odds += 0.8 * customers["complaints"] - 0.25 * years
odds += 0.5 * (customers["internet"] == "fibre")
odds -= 0.8 * (customers["support"] == "plus")
left = np.where(rng.random(n) < 1 / (1 + np.exp(-odds)), "left", "stayed")
customers.loc[rng.random(n) < 0.2, "last_call_days"] = np.nan  # never called
print(customers.head(3).to_string())
print(pd.Series(left).value_counts(normalize=True).round(2).to_dict())

# %%
# The model takes the table as it is: text, dates, gaps.

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OrdinalEncoder


def age_in_days(frame):
    return (today - frame) / pd.Timedelta("1D")


encode = make_column_transformer(
    (OrdinalEncoder(), ["contract", "payment", "internet", "support"]),
    (FunctionTransformer(age_in_days), ["since"]),
    remainder="passthrough",
)
clf = make_pipeline(
    encode, HistGradientBoostingClassifier(max_leaf_nodes=8, random_state=0)
)
clf = clf.fit(customers, left)

# %%
# What can be offered
# -------------------
# The firm can change the contract, the fee and the level of support. It can't
# undo a complaint, or change how long a customer has stayed.

import bayescfx as cfx

leaves = cfx.probability(clf, "left")
space = (
    cfx.Space.from_data(customers)
    .allow("contract", "fee", "support")
    .only_down("fee")
    .move({"fee": (-15, 0)})
    .cost(per_feature={"contract": 2})  # a longer contract is much to ask for
)
at_risk = customers[leaves(customers) > 0.7]
at_risk = at_risk.query(
    "fee > 60 and support == 'basic' and contract == 'monthly'"
)
customer = at_risk.iloc[3]
print(f"{len(at_risk)} such customers; one of them:")
print(customer.to_string())

# %%
# The manager's own offers
# ------------------------
# ``assess`` scores rows from any source. It reports whether they hit, what
# they cost, which rules they break, and which of their changes could be taken
# back without losing the target.

target = cfx.at_most(0.4)
offers = at_risk.iloc[[3, 3, 3]].assign(
    fee=customer["fee"] - [25, 0, 15],
    contract=["monthly", "two years", "one year"],
    support=["basic", "plus", "plus"],
)
offers.index = ["cheap", "loyal", "a bit of all"]
judged = cfx.assess(leaves, customer, offers, space, target)
judged[["output", "hit", "distance", "broken", "needless"]].round(2)

# %%
# Better ones
# -----------

answer = cfx.explain(leaves, customer, space, target, n=3, rng=0)
print(answer)

# %%
# One euro less in the best offer is a step of the model's trees rather than an
# argument. The picture shows what the fee does, for the customer as they are and
# with the rest of that offer.

from bayescfx import plots

plots.response(answer, feature="fee")
