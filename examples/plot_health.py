"""
Health: how far would it get, and with what?
============================================

A physician has a model of how far diabetes gets within a year, and a patient with
a high prediction. Which measurements would have to be different for the model to
expect a quarter less? And is it enough if only weight and blood pressure can be
worked on?
"""

# %%
# Data and model
# --------------
# 442 people in raw units: years, kg/m², mm Hg, and six values of blood serum.

from sklearn.datasets import load_diabetes
from sklearn.ensemble import GradientBoostingRegressor

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
names = {
    "s1": "cholesterol",
    "s2": "LDL",
    "s3": "HDL",
    "s4": "ratio",
    "s5": "log triglycerides",
}
X = X.rename(columns=names | {"s6": "glucose"})
model = GradientBoostingRegressor(random_state=0).fit(X, y)
patient = X.iloc[114]
print(patient.to_frame().T.to_string(index=False))
print(f"prediction {model.predict(X.iloc[[114]])[0]:.0f}, average {y.mean():.0f}")

# %%
# Age and sex stay. Weight, pressure and glucose may only fall, HDL may only rise;
# the ratio of cholesterol to HDL is not free but follows from them; cholesterol
# and LDL go up or down together. And rows must look like people: ``near_data``
# refuses values that hardly ever go together.

import bayescfx as cfx

space = (
    cfx.Space.from_data(X)
    .fix("age", "sex")
    .only_down("bmi", "bp", "glucose")
    .only_up("HDL")
    .between({"bmi": (18.5, None)})
    .derive("ratio", lambda rows: (rows["cholesterol"] / rows["HDL"]).round(2))
    .together("cholesterol", "LDL")
    .near_data(X)
    .max_changes(3)
)
answer = cfx.explain(model, patient, space, cfx.decrease(percent=25), n=3, rng=0)
print(answer)

# %%
# The first answer as a picture: each feature on its own scale, and what its
# change contributes.

from bayescfx import plots

plots.change_chart(answer)

# %%
# Only weight and pressure
# ------------------------
# Three points of BMI and ten of pressure are what she thinks can be done in a
# year. This model is cheap to call; here we allow 60 rows, as if each cost a
# visit.

modest = (
    cfx.Space.from_data(X)
    .allow("bmi", "bp")
    .move({"bmi": (-3, 0), "bp": (-10, 0)})
)
hard = cfx.explain(
    model, patient, modest, cfx.decrease(percent=25), budget=60, rng=0
)
hard

# %%
# The surrogate along blood pressure: dots are rows that the
# model scored, and the target lies far below.

plots.response(hard, feature="bp")

# %%
# A row changed by hand
# ---------------------
# What does the model predict if the patient gets just as far as she thinks?

print(
    cfx.what_if(
        model, patient, {"bmi": 33.6, "bp": 103}, modest, cfx.decrease(percent=25)
    )
)

# %%
# A page to take along
# --------------------
# The first question, its answers and the pictures as one HTML file that needs no
# network.

import tempfile
from pathlib import Path

with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "patient.html"
    plots.report(answer, page)
    print(f"{page.stat().st_size / 1000:.0f} kB")
