"""Tests of `evaluations`."""
