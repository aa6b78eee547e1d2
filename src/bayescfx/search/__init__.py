"""Searches: ways to spend a budget of model calls on a question."""
