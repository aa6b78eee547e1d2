"""``python -m bayescfx`` is the command ``bayescfx``."""

from bayescfx.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
