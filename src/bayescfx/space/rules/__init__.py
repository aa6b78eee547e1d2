"""Rules, each with the verbs of `Space` that state it."""
