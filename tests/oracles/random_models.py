"""Random JANI models (as JSON data) for comparing ways to run them.

`WILD` models use every feature and may contain expressions without value, probabilities that do
not sum to 1 and assignments out of bounds; in `TAME` models nothing can go wrong, and they keep to
what Storm reads the way we do.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.oracles.random_expressions import (
    Draw,
    Expressions,
    Scope,
    Signature,
    binary,
    clamp,
    ite,
    unary,
)

__all__ = [
    "TAME",
    "WILD",
    "WILD_REAL",
    "Profile",
    "RandomModel",
    "random_examples",
    "random_models",
]

Json = Any

_ACTIONS = ("a", "b", "c")
_RESULTS = ("a", "b", "go", "stop")


@dataclass(frozen=True)
class Profile:
    """Which features models have."""

    wild: bool = True
    reals: bool = False


TAME = Profile(wild=False)
WILD = Profile()
WILD_REAL = Profile(reals=True)


@dataclass(frozen=True)
class RandomModel:
    """A JANI document, values for its open constants, and conditions on its states."""

    document: Json
    constants: dict[str, bool | int | float]
    failure: Json = False
    goal: Json = False


@dataclass(frozen=True)
class _Target:
    """A variable as assignments see it."""

    name: str
    kind: str
    lower: Json = None
    upper: Json = None
    transient: bool = False


@dataclass
class _Builder:
    """A document under construction."""

    draw: Draw
    profile: Profile
    ints: list[str] = field(default_factory=list)
    bools: list[str] = field(default_factory=list)
    reals: list[str] = field(default_factory=list)
    functions: dict[str, tuple[Signature, ...]] = field(default_factory=dict)
    transients: list[_Target] = field(default_factory=list)
    globals: list[_Target] = field(default_factory=list)

    def scope(self, extra: list[_Target] | None = None) -> Scope:
        """Everything in sight, besides ``extra``."""
        names = {"int": list(self.ints), "bool": list(self.bools), "real": list(self.reals)}
        for target in extra or []:
            names[target.kind].append(target.name)
        return Scope(
            tuple(names["int"]), tuple(names["bool"]), tuple(names["real"]), dict(self.functions)
        )

    def expressions(self, scope: Scope, *, wild: bool | None = None) -> Expressions:
        """A source of expressions over ``scope``."""
        wild = self.profile.wild if wild is None else wild
        return Expressions(self.draw, scope, wild=wild, reals=self.profile.reals)

    @property
    def any(self) -> Expressions:
        """A source of choices without names."""
        return self.expressions(Scope())


def random_examples(number: int) -> settings:
    """Hypothesis settings for whole models, which are large and slow as examples go."""
    return settings(max_examples=number, suppress_health_check=list(HealthCheck))


@st.composite
def random_models(draw: Draw, profile: Profile = WILD) -> RandomModel:
    """A strategy for models of ``profile``."""
    builder = _Builder(draw, profile)
    pick, chance = builder.any.pick, builder.any.chance
    constants, values = _constants(builder)
    variables = [_variable(builder, f"x{n}", builder.globals) for n in range(pick((1, 2, 3)))]
    for target in builder.globals:
        _names(builder, target.kind).append(target.name)
    functions = [_function(builder, f"f{n}") for n in range(pick((0, 0, 1, 2)))]
    if chance(40):
        variables += [_transient(builder, f"t{n}") for n in range(pick((1, 2)))]
    automata = [_automaton(builder, n) for n in range(pick((1, 2, 3, 2)))]
    instances = list(range(len(automata)))
    if profile.wild and chance(15):
        instances.append(pick(instances))
    document: Json = {
        "jani-version": 1,
        "name": "random",
        "type": pick(("mdp", "mdp", "lts", "dtmc")) if profile.wild else pick(("mdp", "dtmc")),
        "features": ["derived-operators", "functions"]
        + (["trigonometric-functions", "hyperbolic-functions"] if profile.reals else []),
        "actions": [{"name": name} for name in dict.fromkeys(_ACTIONS + _RESULTS)],
        "constants": constants,
        "variables": variables,
        "functions": functions,
        "properties": [],
        "automata": automata,
        "system": _system(builder, [automata[n] for n in instances]),
    }
    if document["type"] == "lts":
        _make_certain(document)
    if chance(15):
        condition = builder.expressions(builder.scope(), wild=False).boolean(1)
        document["restrict-initial"] = {"exp": condition}
    failure, goal = (builder.expressions(builder.scope()).boolean(3) for _ in range(2))
    return RandomModel(document, values, failure, goal)


def _constants(builder: _Builder) -> tuple[list[Json], dict[str, bool | int | float]]:
    pick, chance = builder.any.pick, builder.any.chance
    if not chance(40):
        return [], {}
    declared: list[Json] = [{"name": "K", "type": "int"}]
    value = pick((2, 1, 3, 0))
    values: dict[str, bool | int | float] = {"K": value} if chance(50) else {}
    if not values:
        declared[0]["value"] = value
    declared.append({"name": "L", "type": "int", "value": binary("+", "K", 1)})
    builder.ints += ["K", "L"]
    if builder.profile.reals:
        declared.append({"name": "R", "type": "real", "value": pick((0.5, 3, -1.5))})
        builder.reals.append("R")
    return declared, values


def _names(builder: _Builder, kind: str) -> list[str]:
    return {"int": builder.ints, "bool": builder.bools, "real": builder.reals}[kind]


def _variable(builder: _Builder, name: str, targets: list[_Target]) -> Json:
    pick, chance = builder.any.pick, builder.any.chance
    kinds = ["int", "int", "bool", "free"] + (
        ["real", "real", "box"] if builder.profile.reals else []
    )
    kind = pick(kinds)
    if kind == "bool":
        targets.append(_Target(name, "bool"))
        return {"name": name, "type": "bool"} | ({"initial-value": False} if chance(70) else {})
    base = "real" if kind in ("real", "box") else "int"
    lower = pick((0, -2, -1, 1))
    upper = lower + pick((1, 2, 3))
    type_: Json = base
    if kind in ("int", "box"):
        shown = binary("-", upper + 1, 1) if chance(20) else upper
        type_ = {"kind": "bounded", "base": base, "lower-bound": lower, "upper-bound": shown}
    declaration: Json = {"name": name, "type": type_}
    if base == "real" or kind == "free" or chance(75):
        declaration["initial-value"] = pick((lower, upper))
    bounds = (lower, upper) if kind in ("int", "box") or not builder.profile.wild else (None, None)
    targets.append(_Target(name, base, *bounds))
    return declaration


def _transient(builder: _Builder, name: str) -> Json:
    kind = builder.any.pick(["int", "bool"] + (["real"] if builder.profile.reals else []))
    builder.transients.append(_Target(name, kind, transient=True))
    initial = {"int": 1, "bool": True, "real": 0.5}[kind]
    return {"name": name, "type": kind, "transient": True, "initial-value": initial}


def _function(builder: _Builder, name: str) -> Json:
    pick = builder.any.pick
    kinds = ("int", "bool", "real") if builder.profile.reals else ("int", "bool")
    kind = pick(kinds)
    parameters = [(f"p{n}", pick(kinds)) for n in range(pick((1, 2)))]
    targets = [_Target(parameter, of) for parameter, of in parameters]
    body = builder.expressions(builder.scope(targets)).of_kind(kind, 1)
    signature = Signature(name, tuple(of for _, of in parameters))
    builder.functions[kind] = (*builder.functions.get(kind, ()), signature)
    return {
        "name": name,
        "type": kind,
        "parameters": [{"name": parameter, "type": of} for parameter, of in parameters],
        "body": body,
    }


def _automaton(builder: _Builder, position: int) -> Json:
    pick, chance = builder.any.pick, builder.any.chance
    places = [f"l{n}" for n in range(pick((1, 2, 3)))]
    local: list[_Target] = []
    variables = [_variable(builder, f"y{n}", local) for n in range(pick((0, 1)))]
    if not builder.profile.wild:  # Storm wants distinct names
        for declaration, target in list(zip(variables, local, strict=True)):
            declaration["name"] = f"y{position}"
            local = [_Target(f"y{position}", target.kind, target.lower, target.upper)]
    maker = _EdgeMaker(builder, position, places, local)
    locations: list[Json] = [{"name": place} for place in places]
    if builder.profile.wild:
        for location in locations:
            if builder.transients and chance(30):
                target = pick(builder.transients)
                value = maker.expressions(local).of_kind(target.kind, 1)
                location["transient-values"] = [{"ref": target.name, "value": value}]
    return {
        "name": f"A{position}",
        "locations": locations,
        "initial-locations": places[: 2 if chance(15) else 1],
        "variables": variables,
        "edges": [maker.edge() for _ in range(pick((2, 1, 3, 4, 5, 6)))],
    }


@dataclass
class _EdgeMaker:
    """Draws edges of one automaton."""

    builder: _Builder
    position: int
    places: list[str]
    local: list[_Target]

    def expressions(self, extra: list[_Target], *, wild: bool | None = None) -> Expressions:
        """Expressions over everything in sight and ``extra``."""
        return self.builder.expressions(self.builder.scope(extra), wild=wild)

    def edge(self) -> Json:
        """One edge."""
        pick, chance = self.builder.any.pick, self.builder.any.chance
        edge: Json = {"location": pick(self.places)}
        if chance(85):
            edge["action"] = pick(_ACTIONS)
        if chance(75):
            sights = list(self.local)
            if self.builder.profile.wild and chance(30):
                sights += self.builder.transients
            wild = self.builder.profile.wild and chance(25)
            edge["guard"] = {"exp": self.expressions(sights, wild=wild).boolean(2)}
        weights = self._weights()
        edge["destinations"] = [self._destination(weight) for weight in weights]
        return edge

    def _weights(self) -> list[Json]:
        """Probabilities of one edge's destinations; None stands for 1."""
        source = self.expressions(self.local, wild=False)
        pick = source.pick
        shape = pick(("one", "two", "ite", "state", "three", "any"))
        if shape == "one":
            return [None]
        if shape == "ite":
            condition = source.boolean(1)
            return [ite(condition, 1, 0), ite(condition, 0, 1)]
        if shape == "state":
            share = binary("/", clamp(source.integer(0), 0, 4), 4)
            return [share, binary("-", 1, share)]
        if shape == "three":
            first = pick((0.25, 0, 0.5))
            return [first, binary("/", 1, 4), binary("-", 0.75, first)]
        if shape == "any" and self.builder.profile.wild and source.chance(40):
            wild = self.expressions(self.local)
            return [ite(wild.boolean(0), wild.real(1), 0.5), 0.5]
        first = pick((0.5, 0.25, 0.1, 1.0, 0.0))
        return [first, binary("-", 1, first)]

    def _destination(self, weight: Json) -> Json:
        pick, chance = self.builder.any.pick, self.builder.any.chance
        destination: Json = {"location": pick(self.places)}
        if weight is not None:
            destination["probability"] = {"exp": weight}
        found: dict[tuple[str, int], Json] = {}
        targets = [*self.local, *self.builder.globals]
        if self.builder.profile.wild:
            targets += self.builder.transients
        for _ in range(pick((1, 0, 2, 3))):
            target = pick(targets)
            index = pick((0, 0, 0, 0, 1, 2))
            if not self.builder.profile.wild:  # no conflict; Storm allows one index per variable
                index = 3 * self.position + zlib.crc32(target.name.encode()) % 3
            found.setdefault((target.name, index), self._assignment(target, index))
        destination["assignments"] = list(found.values())
        if not found and chance(50):
            del destination["assignments"]
        return destination

    def _assignment(self, target: _Target, index: int) -> Json:
        chance = self.builder.any.chance
        wild = self.builder.profile.wild and chance(20)
        sights = self.local + (self.builder.transients if self.builder.profile.wild else [])
        value = self._value(target, self.expressions(sights, wild=wild))
        if target.lower is not None and not wild:
            value = clamp(value, target.lower, target.upper)
        assignment = {"ref": target.name, "value": value}
        return assignment | ({"index": index} if index or chance(20) else {})

    def _value(self, target: _Target, source: Expressions) -> Json:
        """Often something that moves on, or few states are reachable."""
        if target.kind == "bool" and source.chance(40):
            return unary("¬", target.name)
        if target.kind == "int" and target.lower is not None and source.chance(60):
            ahead = binary("+", target.name, source.pick((1, 2)))
            return ite(binary("=", target.name, target.upper), target.lower, ahead)
        return source.of_kind(target.kind, 2)


def _system(builder: _Builder, instances: list[Json]) -> Json:
    pick, chance = builder.any.pick, builder.any.chance
    elements: list[Json] = [{"automaton": automaton["name"]} for automaton in instances]
    if builder.profile.wild:
        for element in elements:
            if chance(15):
                element["input-enable"] = [pick(_ACTIONS)]
    if len(instances) == 1 and not builder.profile.wild:  # Storm does not look at the vectors
        syncs = [{"synchronise": [action], "result": action} for action in _ACTIONS]
        return {"elements": elements, "syncs": syncs}
    syncs = []
    for number in range(pick((2, 3, 4, 5))):
        vector: list[str | None] = [pick((*_used(automaton), None)) for automaton in instances]
        if number < 2 and all(action is None for action in vector):
            vector[0] = _ACTIONS[number]
        if all(action is None for action in vector):
            continue
        sync: Json = {"synchronise": vector}
        if chance(85):
            sync["result"] = pick(_RESULTS)
        syncs.append(sync)
    return {"elements": elements, "syncs": syncs}


def _used(automaton: Json) -> tuple[str, ...]:
    """Mostly actions that the automaton has edges for."""
    names = [edge["action"] for edge in automaton["edges"] if "action" in edge]
    return (*names, *dict.fromkeys(names), "a")


def _make_certain(document: Json) -> None:
    """An lts has no probabilities: keep every edge's first destination."""
    for automaton in document["automata"]:
        for edge in automaton["edges"]:
            edge["destinations"] = [{**edge["destinations"][0]}]
            edge["destinations"][0].pop("probability", None)
