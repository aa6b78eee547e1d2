"""Junk, damage and hostile input: every error is one of ours, and no number is wrong."""
