"""What the pictures show, as numbers; nothing here draws."""
