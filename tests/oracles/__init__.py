"""Independent references: slow, simple and exact."""
