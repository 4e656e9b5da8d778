"""What people write instead of JANI's operators."""

from __future__ import annotations

from safetest_gym.jani.operators import ARITY
from safetest_gym.jani.reporting import quote, suggest

__all__ = ["misplaced_operator", "operator_hint"]

_MEANT = {
    "⇒": ("=>", "->", "→", "-->", "implies", "⟹"),
    "=": ("==", "===", "eq", "iff", "<=>", "⇔"),
    "≠": ("!=", "<>", "/=", "~=", "=/=", "neq", "ne"),
    "≤": ("<=", "=<", "le", "leq"),
    "≥": (">=", "ge", "geq"),
    "<": ("lt",),
    ">": ("gt",),
    "∧": ("&&", "&", "and", "AND", "/\\", "^^"),
    "∨": ("||", "|", "or", "OR", "\\/"),
    "¬": ("!", "not", "NOT", "~"),
    "pow": ("**", "^", "power"),
    "%": ("mod", "rem", "modulo"),
    "ite": ("if", "?", "?:", "cond"),
    "trc": ("trunc", "truncate"),
    "ceil": ("ceiling", "⌈⌉"),
    "sgn": ("sign", "signum"),
    "*": ("×", "·", "∙"),
    "/": ("÷", "div", "//"),
    "-": ("−", "minus"),
    "+": ("plus",),
    "log": ("ln", "log2", "log10"),
}
_MEANING = {wrong: right for right, wrongs in _MEANT.items() for wrong in wrongs}

_FEATURES = {
    "arrays": ("aa", "ac", "av"),
    "datatypes": ("da", "dv", "oa", "ov", "empty"),
    "nondet-selection": ("nondet",),
    "continuous variables": ("der",),
}
_PROPERTY_OPERATORS = frozenset(
    (
        *("F", "G", "U", "W", "R", "Pmin", "Pmax", "Emin", "Emax", "Smin", "Smax", "∀", "∃"),
        *("filter", "initial", "deadlock", "timelock", "PA", "objective"),
        *("state-condition", "states-values"),
    )
)


def operator_hint(symbol: str) -> str:
    """What was probably meant by an operator that JANI does not have."""
    if symbol in _MEANING:
        return f"did you mean {quote(_MEANING[symbol])}?"
    return suggest(symbol, (*ARITY, "call"))


def misplaced_operator(symbol: str) -> str:
    """What to say about an operator that exists but cannot be used in an expression here."""
    for feature, symbols in _FEATURES.items():
        if symbol in symbols:
            return f"operator {quote(symbol)} belongs to {feature}, which are not supported"
    if symbol in _PROPERTY_OPERATORS:
        return f"{quote(symbol)} belongs to properties, it is no operator of expressions"
    return ""
