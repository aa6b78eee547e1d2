"""Reading requests."""
