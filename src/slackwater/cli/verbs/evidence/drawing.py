"""SVG drawings, each in two widths: for a screen and for a phone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from slackwater.cli.verbs.evidence.markup import Html, element, join, text

WIDE, NARROW = 960, 360


@dataclass(slots=True)
class Drawing:
    width: int
    height: float = 0
    parts: list[Html] = field(default_factory=list)

    @property
    def is_wide(self) -> bool:
        return self.width >= WIDE

    def words(self, x: float, y: float, value: object, kind: str = "", anchor: str = "start") -> None:
        """Draws a text with its baseline at ``y``."""
        self._add("text", value, x=_number(x), y=_number(y), class_=f"w {kind}".strip(), text_anchor=anchor)

    def box(self, x: float, y: float, width: float, height: float, kind: str, radius: float = 2) -> None:
        size = {"width": _number(max(width, 0)), "height": _number(max(height, 0))}
        self._add("rect", x=_number(x), y=_number(y), rx=_number(radius), class_=kind, **size)

    def dot(self, x: float, y: float, radius: float, kind: str) -> None:
        self._add("circle", cx=_number(x), cy=_number(y), r=_number(radius), class_=kind)

    def stroke(self, x: float, y: float, to_x: float, to_y: float, kind: str) -> None:
        self._add("line", x1=_number(x), y1=_number(y), x2=_number(to_x), y2=_number(to_y), class_=kind)

    def area(self, points: list[tuple[float, float]], kind: str) -> None:
        self._add("polygon", points=" ".join(f"{_number(x)},{_number(y)}" for x, y in points), class_=kind)

    def _add(self, name: str, *content: object, **attributes: object) -> None:
        self.parts.append(element(name, *content, **attributes))


def figure(name: str, title: str, description: str, draw: Callable[[Drawing], None], caption: object = "") -> Html:
    sizes = (("wide", WIDE), ("narrow", NARROW))
    drawn = [_svg(f"{name}-{size}", title, description, draw, width, size) for size, width in sizes]
    return element("figure", *drawn, element("figcaption", caption) if caption else "")


def _svg(name: str, title: str, description: str, draw: Callable[[Drawing], None], width: int, size: str) -> Html:
    drawing = Drawing(width)
    draw(drawing)
    labels = join([element("title", title, id=f"{name}-t"), element("desc", description, id=f"{name}-d")])
    head = f'<svg class="{size}" viewBox="0 0 {width} {_number(drawing.height)}" role="img" '
    return Html(f'{head}aria-labelledby="{text(name)}-t {text(name)}-d">{labels}{join(drawing.parts)}</svg>')


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
