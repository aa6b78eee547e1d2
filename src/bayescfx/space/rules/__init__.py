"""One rule per file, with the verbs of `Space` that state it."""
