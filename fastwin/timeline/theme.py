"""Colours of timelines, for light screens and for dark ones, and how an SVG changes from one to the other."""

__all__ = ["COLOURS", "with_dark_screens"]

# By what it is for: on a light screen, on a dark one.
_BOTH = {
    "ground": ("#fffffe", "#1e2129"),
    "ink": ("#37474f", "#cfd8dc"),
    "guide": ("#dfe5e8", "#3b434d"),
    "past": ("#eef4fb", "#26303f"),
    "dot": ("#1a237f", "#e8eaf6"),
    "late dot": ("#c62829", "#ff8a80"),
    "watermark": ("#1976d3", "#64b5f6"),
    "on time": ("#a5d6a8", "#2e6b33"),
    "early": ("#ffe083", "#7d6200"),
    "late": ("#ef9a9b", "#8e3035"),
    "deleted": ("#cfd8dd", "#4a555c"),
    "on time mark": ("#2e7d33", "#81c784"),
    "early mark": ("#f57f18", "#ffca28"),
    "late mark": ("#b71c1d", "#ff8a81"),
    "deleted mark": ("#78909d", "#90a4ae"),
}
COLOURS = {name: light for name, (light, _) in _BOTH.items()}
"""The colours of a light screen. Each is there once, so that a style sheet can tell them apart."""


def _style() -> str:
    rules = [
        f'.fastwin-timeline [style*="{what}: {light}"]{{{what}:{dark}!important}}'
        for light, dark in _BOTH.values()
        for what in ("fill", "stroke")
    ]
    return "<style>@media (prefers-color-scheme: dark){" + "".join(rules) + "}</style>"


def with_dark_screens(svg: str) -> str:
    """Returns an SVG that is drawn in COLOURS as one element, with a style sheet for dark screens."""
    begin = svg.index("<svg ")
    end = svg.index(">", begin) + 1
    opened = svg[begin:end].replace("<svg ", '<svg class="fastwin-timeline" ', 1)
    return opened + _style() + svg[end:]
