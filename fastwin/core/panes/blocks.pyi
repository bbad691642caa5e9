from fastwin.core.panes.panetable import PaneTable

__all__ = ["blocks_of"]

def blocks_of(panes: PaneTable) -> list[tuple[int, int]]: ...
