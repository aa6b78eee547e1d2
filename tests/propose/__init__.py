"""Tests of `propose`."""
