"""Tests of `acquisition`."""
