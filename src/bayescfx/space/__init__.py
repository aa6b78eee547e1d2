"""What may change: a space of features and rules, and the region around one query."""
