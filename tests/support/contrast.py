"""How far two colours stand apart, as WCAG counts it."""

import re

__all__ = ["contrast", "luminance"]


def luminance(colour: str) -> float:
    """Returns how bright a colour is, from 0 to 1. colour: ``#rrggbb`` or ``rgb(r, g, b)``."""
    if colour.startswith("#"):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    else:
        parts = [float(part) / 255 for part in re.findall(r"[\d.]+", colour)[:3]]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colours, from 1 to 21."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
