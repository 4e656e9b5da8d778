"""Let griffe see properties of classes that also have an attribute named ``property``."""

from __future__ import annotations

from typing import Any

import griffe

__all__ = ["Properties"]


class Properties(griffe.Extension):
    """Turns methods under ``@property`` that were taken for plain ones into attributes."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        for name, member in list(cls.members.items()):
            if not isinstance(member, griffe.Function):
                continue
            if any(str(decorator.value) == "property" for decorator in member.decorators):
                found = griffe.Attribute(
                    name,
                    lineno=member.lineno,
                    endlineno=member.endlineno,
                    annotation=member.returns,
                    docstring=member.docstring,
                    parent=cls,
                )
                found.labels.add("property")
                cls.set_member(name, found)
