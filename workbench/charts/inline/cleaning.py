"""Cleans a drawn SVG for a page: it keeps shapes, texts, and links to the page's own server.

Only listed elements and attributes are kept, whatever a chart contains. Vega's roles and descriptions of single marks
are dropped too: a chart has one label, and each link has its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from html import escape
from typing import Final
from xml.etree.ElementTree import Element, fromstring

_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_SHAPES: Final = ("path", "rect", "line", "circle", "polygon", "polyline")
_ELEMENTS: Final = {*_SHAPES, "g", "text", "tspan", "a", "clipPath", "defs"}
_COLOURS: Final = ("fill", "stroke")
_ATTRIBUTES: Final = {
    *("x", "y", "x1", "x2", "y1", "y2", "dx", "dy", "width", "height", "cx", "cy", "r", "rx", "ry"),
    *("points", "fill-opacity", "stroke-opacity", "opacity", "stroke-width", "stroke-dasharray", "stroke-dashoffset"),
    *("stroke-linecap", "stroke-linejoin", "stroke-miterlimit", "text-anchor", "font-weight"),
    *("font-style", *_COLOURS),
}
_NOTHING: Final = ("", "M0,0h0v0h0Z")
_NAMED: Final[Mapping[str, str]] = {"white": "#ffffff", "black": "#000000"}
_SHORT: Final = re.compile(r"#([0-9a-f])([0-9a-f])([0-9a-f])")
_RGB: Final = re.compile(r"rgb\((\d{1,3}), ?(\d{1,3}), ?(\d{1,3})\)")
_PAINT: Final = re.compile(r"none|transparent|#[0-9a-f]{6}")
_PLACES: Final = ("d", "transform")
_FRACTION: Final = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")
_CLIP: Final = re.compile(r"url\(#([^)]+)\)")


def cleaned(
    svg: str,
    *,
    label: str,
    prefix: str,
    path_of: Callable[[str], str | None],
    colours: Mapping[str, str],
    larger: float,
) -> str:
    """An SVG for a page.

    Args:
        svg: The output of the chart library.
        label: Its content, for readers who cannot see it.
        prefix: The prefix of every id, so that no two charts of a page share one.
        path_of: Maps the address of a link to its path; None drops the link.
        colours: The replacement of each color, such as `#rrggbb`; other colors stay.
        larger: The factor by which texts were laid out larger than shown.
    """
    # It was drawn in this process from a specification; a document type, which could grow, is never in it.
    root = fromstring(svg)  # noqa: S314
    drawing = _Drawing(root, prefix, path_of, colours, larger)
    within = "".join(drawing.written(child) for child in root)
    # Marks that are drawn over a link do not cover it.
    role = 'role="group" pointer-events="none"' if drawing.links else 'role="img"'
    size = "".join(f' {name}="{escape(root.attrib[name])}"' for name in ("width", "height", "viewBox"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" {role} aria-label="{escape(label)}"{size} '
        f'font-family="system-ui, sans-serif">{within}</svg>'
    )


class _Drawing:
    """Writes the elements of one SVG."""

    def __init__(
        self,
        root: Element,
        prefix: str,
        path_of: Callable[[str], str | None],
        colours: Mapping[str, str],
        larger: float,
    ) -> None:
        self.links = 0
        self._path_of = path_of
        self._colours = colours
        self._larger = larger
        # Vega numbers ids through the life of the process.
        clips = [of.attrib["id"] for of in root.iter(f"{_SVG}clipPath") if "id" in of.attrib]
        self._ids = {clip: f"{prefix}-{number}" for number, clip in enumerate(clips, 1)}

    def written(self, element: Element) -> str:
        """An element with all that it contains; empty where nothing of it is shown."""
        tag = element.tag.removeprefix(_SVG)
        # Labels that would overlap others are drawn without opacity.
        hidden = element.get("display") == "none" or element.get("opacity") == "0" or element.get("d") in _NOTHING
        if tag not in _ELEMENTS or hidden:
            return ""
        if tag == "a":
            return self._link(element)
        return self._element(tag, element, "".join(self._within(element)))

    def _within(self, element: Element) -> Iterator[str]:
        if element.tag in (f"{_SVG}text", f"{_SVG}tspan"):
            yield escape(element.text or "")
        for child in element:
            yield self.written(child)

    def _element(self, tag: str, element: Element, within: str) -> str:
        attributes = "".join(f' {name}="{escape(value)}"' for name, value in self._attributes(tag, element))
        if within:
            return within if tag == "g" and not attributes else f"<{tag}{attributes}>{within}</{tag}>"
        return f"<{tag}{attributes}/>" if tag in _SHAPES else ""

    def _attributes(self, tag: str, element: Element) -> Iterator[tuple[str, str]]:
        for name, value in element.attrib.items():
            if name in _COLOURS:
                if (paint := self._paint(value)) is not None:
                    yield name, paint
            elif name == "clip-path":
                if (clip := _CLIP.fullmatch(value)) is not None and clip[1] in self._ids:
                    yield name, f"url(#{self._ids[clip[1]]})"
            elif name == "id" and tag == "clipPath":
                yield name, self._ids[value]
            elif name == "font-size":
                yield name, f"{float(value.removesuffix('px')) / self._larger:.4g}px"
            elif name in _PLACES:
                yield name, _FRACTION.sub(lambda of: f"{float(of[0]):.2f}", value)
            elif name in _ATTRIBUTES and not (name in ("opacity", "stroke-width") and value == "1"):
                yield name, value

    def _paint(self, value: str) -> str | None:
        colour = _NAMED.get(value, value)
        colour = _SHORT.sub(r"#\1\1\2\2\3\3", colour) if _SHORT.fullmatch(colour) else colour
        if (of := _RGB.fullmatch(colour)) is not None:
            colour = "#{:02x}{:02x}{:02x}".format(*(min(int(part), 255) for part in of.groups()))
        return self._colours.get(colour, colour) if _PAINT.fullmatch(colour) else None

    def _link(self, element: Element) -> str:
        within = "".join(self._within(element))
        path = self._path_of(element.get(_HREF) or element.get("href") or "")
        if path is None or not within:
            return within
        self.links += 1
        says = next((of.attrib["aria-label"] for of in element.iter() if "aria-label" in of.attrib), "")
        label = escape(says)
        return f'<a href="{escape(path)}" pointer-events="all" aria-label="{label}"><title>{label}</title>{within}</a>'
