"""Tests of `result`."""
