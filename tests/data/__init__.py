"""Tests of `features`."""
