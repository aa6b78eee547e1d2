"""Models from files and services."""
