from __future__ import annotations
def read_own_properties(model, document): return ()
