"""Models from files and services; `bayescfx` itself exports what users need of it."""
