"""Train, test, shield, repair and verify the policies of JANI planning tasks.

Importing registers the environment ids with Gymnasium. Names are loaded when first used,
so that this costs hardly more than importing Gymnasium; ``__init__.pyi`` says where they are.
"""

from __future__ import annotations

from importlib import import_module

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

import_module("safetest_gym.envs.registration").register_envs()
