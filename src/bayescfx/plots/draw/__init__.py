"""Numbers as pictures; nothing here computes."""
