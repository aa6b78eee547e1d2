"""Tests of `plots`."""
