"""The page: ask "what if" in a browser; needs ``pip install 'bayescfx[web]'``."""
