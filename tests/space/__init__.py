"""Tests of `space`."""
