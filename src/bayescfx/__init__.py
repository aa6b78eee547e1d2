"""Counterfactual explanations for any regression model, by Bayesian optimisation of a potential."""
