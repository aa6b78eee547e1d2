"""The command line: ``bayescfx demo``, ``explain``, ``explain-many``, ``inspect``, ``report``."""

from bayescfx.cli.app import main

__all__ = ["main"]
