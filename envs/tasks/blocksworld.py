"""Turn a tower upside down with a hand that slips, on a table with little room."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from safetest_gym.envs.tasks import build
from safetest_gym.envs.tasks.build import Expr, Json
from safetest_gym.envs.tasks.checks import require_between, require_int
from safetest_gym.errors import ConfigError

__all__ = ["Blocksworld"]

_HAND = "hand-empty"
_COUNT = "table-counter"
_STEP_COST = "step_cost"
_FAILS = "failing_probability"
_BOUND = "item_cost_bound"
_TABLE = "choose_table"


@dataclass(frozen=True, kw_only=True, slots=True)
class Blocksworld:
    """Blocksworld: reverse the tower, never put too many blocks on the table.

    Attributes:
        blocks: how many; initially one tower, block 0 on top.
        table_limit: blocks the table holds; one more is a failure.
        cost_bound: a block whose moves failed so often cannot be moved any more;
            None for a model without costs.
        variant: what the policy sees: ``aware`` the blocks' costs, ``ignoring`` not.
        failing_probability: of a move that changes nothing but costs.
    """

    blocks: int = 6
    table_limit: int = 5
    cost_bound: int | None = 50
    variant: Literal["aware", "ignoring"] = "aware"
    failing_probability: float = 0.5

    def __post_init__(self) -> None:
        require_int("blocks", self.blocks, 2)
        require_int("table_limit", self.table_limit, 1, self.blocks)
        if self.cost_bound is not None:
            require_int("cost_bound", self.cost_bound, 1)
        if self.variant not in ("aware", "ignoring"):
            raise ConfigError(f"variant must be 'aware' or 'ignoring', got {self.variant!r}")
        require_between("failing_probability", self.failing_probability, 0, 1)

    @property
    def name(self) -> str:
        """Name of the model, from the parameters."""
        cost = "nocost" if self.cost_bound is None else f"bound{self.cost_bound}"
        parts = ["blocksworld", self.blocks, self.table_limit, cost]
        parts += ["ignoring"] if self.variant == "ignoring" else []
        if self.failing_probability != 0.5:
            parts.append(f"p{self.failing_probability:g}")
        return "_".join(map(str, parts))

    @property
    def observed(self) -> tuple[str, ...] | None:
        """Variables that the policy sees; None for all."""
        if self.cost_bound is None:
            return None
        hidden = {_STEP_COST}
        if self.variant == "ignoring":
            hidden |= {_cost(block) for block in range(self.blocks)}
        return tuple(v["name"] for v in self._variables() if v["name"] not in hidden)

    def model(self) -> Json:
        """The JANI document, without properties."""
        constants: dict[str, int | float | bool] = {_FAILS: float(self.failing_probability)}
        if self.cost_bound is not None:
            constants[_BOUND] = self.cost_bound
        return build.model(
            self.name,
            actions=[_TABLE, *(_choose(block) for block in range(self.blocks))],
            variables=self._variables(),
            edges=[edge for block in range(self.blocks) for edge in self._moves(block)],
            constants=constants,
        )

    def properties(self) -> list[Json]:
        """The planning property with the compact start condition."""
        wanted = [build.eq(_on(b), b + 1) for b in range(self.blocks)]
        reward = None if self.cost_bound is None else build.mul(-0.01, _STEP_COST)
        return [
            build.planning_property(
                f"{self.name}-starts",
                goal=build.both(*wanted),
                failure=build.ge(_COUNT, self.table_limit + 1),
                start=self._start(),
                goal_potential=build.total(build.ite(placed, 10, 0) for placed in wanted),
                step_reward=reward,
            )
        ]

    def _others(self, block: int) -> Iterator[int]:
        return (other for other in range(self.blocks) if other != block)

    def _variables(self) -> list[Json]:
        n, blocks = self.blocks, range(self.blocks)
        flag, place = build.bounded(0, 1), build.bounded(0, self.blocks)
        declared = [
            build.variable(_HAND, flag, 1),
            build.variable(_COUNT, place, 1),
            *(build.variable(_on(b), place, b + 2 if b < n - 1 else 1) for b in blocks),
            *(build.variable(_clear(b), flag, int(b == 0)) for b in blocks),
            *(build.variable(_height(b), place, n - 1 - b) for b in blocks),
        ]
        if self.cost_bound is not None:
            cost = build.bounded(0, _BOUND)
            declared += [build.variable(_cost(b), cost, 0) for b in blocks]
            declared.append(build.variable(_STEP_COST, cost, 0))
        return declared

    def _moves(self, block: int) -> Iterator[Json]:
        """Pick up, put down, then per other block stack and unstack."""
        empty, clear = build.ge(_HAND, 1), build.ge(_clear(block), 1)
        held = build.both(build.eq(_on(block), 0), build.le(_HAND, 0), build.le(_clear(block), 0))
        taken: dict[str, Expr] = {
            _HAND: 0, _on(block): 0, _clear(block): 0, _height(block): self.blocks,
        }  # fmt: skip
        picked = {**taken, _COUNT: build.sub(_COUNT, 1)}
        guard = build.both(empty, clear, build.eq(_on(block), 1))
        yield self._move(_choose(block), guard, block, picked)
        put: dict[str, Expr] = {
            _HAND: 1, _on(block): 1, _clear(block): 1, _height(block): 0,
            _COUNT: build.add(_COUNT, 1),
        }  # fmt: skip
        yield self._move(_TABLE, held, block, put)
        for other in self._others(block):
            code = _code(block, other)
            stacked: dict[str, Expr] = {
                _HAND: 1, _on(block): code, _clear(block): 1, _clear(other): 0,
                _height(block): build.add(_height(other), 1),
            }  # fmt: skip
            guard = build.both(build.ge(_clear(other), 1), held)
            yield self._move(_choose(other), guard, block, stacked)
            covered = build.le(_clear(other), 0)
            guard = build.both(empty, clear, build.eq(_on(block), code), covered)
            yield self._move(_choose(block), guard, block, {**taken, _clear(other): 1})

    def _move(self, action: str, guard: Expr, block: int, effects: dict[str, Expr]) -> Json:
        """One move that may fail; the moved block bears the cost."""
        failure: dict[str, Expr] = {}
        if self.cost_bound is not None:
            cost = _cost(block)
            guard = build.both(guard, build.le(cost, build.sub(_BOUND, 1)))
            effects = {**effects, _STEP_COST: cost}
            failure = {_STEP_COST: cost, cost: build.add(cost, 1)}
        works = build.destination(effects, build.sub(1, _FAILS))
        return build.edge(action, guard, [works, build.destination(failure, _FAILS)])

    def _start(self) -> Expr:
        """All consistent stacks within the limit, a block in hand or not, nothing spent."""
        blocks = range(self.blocks)
        in_hand = build.total(_one_if(build.eq(_on(b), 0)) for b in blocks)
        on_table = build.total(_one_if(build.eq(_on(b), 1)) for b in blocks)
        spent = [] if self.cost_bound is None else [*(_cost(b) for b in blocks), _STEP_COST]
        return build.both(
            build.ge(_COUNT, 1),
            build.le(_COUNT, self.table_limit),
            build.eq(build.add(_HAND, in_hand), 1),
            build.eq(_COUNT, on_table),
            *(self._one_state(block) for block in blocks),
            *(build.eq(_height(block), self._height_of(block)) for block in blocks),
            *(build.eq(cost, 0) for cost in spent),
        )

    def _one_state(self, block: int) -> Expr:
        """A block is clear, or in the hand, or carries exactly one other."""
        carried = (_one_if(build.eq(_on(o), _code(o, block))) for o in self._others(block))
        in_hand = _one_if(build.eq(_on(block), 0))
        return build.eq(build.total([_clear(block), in_hand, *carried]), 1)

    def _height_of(self, block: int) -> Expr:
        """The height that follows from what is below; excludes cycles."""
        height: Expr = build.ite(build.eq(_on(block), 1), 0, self.blocks)
        for other in self._others(block):
            above = build.add(_height(other), 1)
            height = build.ite(build.eq(_on(block), _code(block, other)), above, height)
        return height


def _one_if(condition: Expr) -> Expr:
    return build.ite(condition, 1, 0)


def _code(block: int, below: int) -> int:
    """Value of a block's place when it stands on another block."""
    return below + 2 if below < block else below + 1


def _choose(block: int) -> str:
    return f"choose_block_{block}"


def _on(block: int) -> str:
    return f"block_{block}"


def _clear(block: int) -> str:
    return f"clear_{block}"


def _height(block: int) -> str:
    return f"height_{block}"


def _cost(block: int) -> str:
    return f"cost_block_{block}"
