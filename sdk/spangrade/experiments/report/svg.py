"""SVG elements. Attributes and text are escaped; numbers are written short."""

from typing import Any

from markupsafe import Markup, escape


def element(name: str, *children: Any, **attributes: Any) -> Markup:
    """``<name attributes>children</name>``; ``stroke_width`` becomes ``stroke-width``, ``class_`` becomes ``class``."""
    pairs = (
        f' {key.rstrip("_").replace("_", "-")}="{escape(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(_inside(child) for child in children)
    return Markup(f"<{name}{''.join(pairs)}>{inside}</{name}>")  # noqa: S704 - each part is escaped above


def _inside(child: Any) -> str:
    if isinstance(child, (list, tuple)):
        return "".join(_inside(one) for one in child)
    return "" if child is None else str(escape(child))


def picture(title: str, said: str, *children: Any, width: float, height: float, class_: str = "plot") -> Markup:
    """An SVG that is an image with a title and a description for those who do not see it."""
    return element(
        "svg",
        element("title", title),
        element("desc", said),
        *children,
        class_=class_,
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        role="img",
        aria_label=f"{title}: {said}",
    )


def strip(said: str, *children: Any) -> Markup:
    """An SVG in a table's cell, as wide as the cell, 100 units by 20: lines in it keep their thickness, and so must be drawn."""
    return element(
        "svg",
        element("title", said),
        *children,
        class_="strip",
        viewBox="0 0 100 20",
        preserveAspectRatio="none",
        role="img",
        aria_label=said,
    )


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A line; of no length and with round ends it is a dot."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _number(value: Any) -> Any:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
