"""Exact search: proven answers for models that can be read."""
