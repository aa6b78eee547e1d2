"""Tests of `potentials`."""
