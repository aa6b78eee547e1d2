"""Junk, damaged and hostile input: every error is the library's own, and no number is wrong."""
