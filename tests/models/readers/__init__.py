"""Tests of `models.readers`."""
