"""Policies: what is tested, in a form that analyses can call millions of times.

Names are loaded when first used, see ``__init__.pyi``; learners and libraries only when
something needs them.
"""

from __future__ import annotations

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
