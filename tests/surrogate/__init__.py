"""Tests of `surrogate`."""
