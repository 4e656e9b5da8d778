from .problem import RepairError
from .repairing import RepairOptions, repair
from .report import RepairReport, SideEffects, side_effects
from .requests import FaultSet, KeepSet
from .sb3_model import repair_sb3

__all__ = [
    "FaultSet",
    "KeepSet",
    "RepairError",
    "RepairOptions",
    "RepairReport",
    "SideEffects",
    "repair",
    "repair_sb3",
    "side_effects",
]
