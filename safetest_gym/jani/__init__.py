"""Read JANI: text to a checked, typed tree. Nothing here computes with states."""

from safetest_gym.jani.formatting import format_expression
from safetest_gym.jani.model import read_model
from safetest_gym.jani.properties import (
    read_condition,
    read_goal,
    read_properties,
    read_start,
)
from safetest_gym.jani.text import parse_expression

__all__ = [
    "format_expression",
    "parse_expression",
    "read_condition",
    "read_goal",
    "read_model",
    "read_properties",
    "read_start",
]
