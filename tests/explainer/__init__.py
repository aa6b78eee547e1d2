"""Tests of `explainer`."""
