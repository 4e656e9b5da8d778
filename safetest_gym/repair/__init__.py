"""Repair: shields (masks), ensembles of trees, networks.

Names are loaded when first used, see ``__init__.pyi``.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
