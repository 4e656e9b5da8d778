"""Data of the player: an unsafe run, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from safetest_gym.reports.episodes import Episode
from safetest_gym.reports.pictures import Painter

__all__ = ["Film", "film_of"]

MOST_FRAMES = 120
"""Of one run; of a longer one the last states are shown."""

_TRAIL = 12


@dataclass(frozen=True, slots=True)
class Film:
    """What the page shows of a run.

    Attributes:
        data: for the script.
        rows: the same in words: number, decision, what it changes, is it a fault.
        left_out: states at the beginning that are not shown.
    """

    name: str
    data: dict[str, Any]
    rows: list[tuple[int, str, str, bool]]
    left_out: int


def film_of(episode: Episode) -> Film:
    """Draw a run."""
    painter, run, task = Painter(episode.setting), episode.run, episode.setting.task
    first = max(0, len(run.states) - MOST_FRAMES)
    frames, rows = [], []
    for place in range(first, len(run.states)):
        state = run.states[place]
        before = int(run.actions[place - 1]) if place else None
        picture = painter.draw(
            state,
            action=before,
            step=place,
            trail=list(run.states[max(first, place - _TRAIL) : place]),
        )
        change = "" if not place else painter.changes(run.states[place - 1], state)
        decision = task.actions[int(run.actions[place])] if place < len(run.actions) else ""
        last = "" if before is None else task.actions[before]
        frames.append(
            {
                "picture": picture,
                "step": place,
                "action": last,
                "change": change,
                "next": decision,
                "fault": place in episode.faults,
                "values": painter.values(state),
            }
        )
        if decision:
            after = painter.changes(state, run.states[place + 1])
            rows.append((place, decision, after, place in episode.faults))
    names = [variable.name for variable in task.variables]
    data = {"name": episode.name, "variables": names, "frames": frames, "steps": len(run)}
    return Film(episode.name, data, rows, first)
