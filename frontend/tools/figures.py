"""What all figures of the commands have in common: matplotlib, its panels, files of its formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .children import Refused
from .report import check_place

PANEL = (5.0, 3.4)
"""Width and height of a panel in inches."""


def check(option: str, path: Path) -> None:
    """Sees, before anything is measured, that a figure can be drawn into the file.

    Raises:
        Refused: `option`, which names the file, cannot be done: matplotlib is not installed, there
            is no folder for the file, or its suffix says no format.
    """
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise Refused(f"{option} needs matplotlib (pip install gnnc[bench]): {error}") from error
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix[1:].lower() not in formats:
        raise Refused(f"{option}: {path} should end in one of .{', .'.join(formats)}")
    check_place(option, path)


class Figure:
    """A grid of panels, each of which is matplotlib's `Axes`.

    Raises:
        ImportError: matplotlib is not installed.
    """

    def __init__(self, rows: int = 1, columns: int = 1, *, panel: tuple[float, float] = PANEL):
        from matplotlib.figure import Figure

        size = (columns * panel[0], rows * panel[1])
        self.figure: Any = Figure(figsize=size, layout="constrained")  # matplotlib has few types
        grid = self.figure.subplots(rows, columns, squeeze=False)
        self.panels: list[Any] = list(grid.flat)
        for axes in self.panels:
            axes.grid(True, which="major", alpha=0.4)
            axes.set_axisbelow(True)

    def save(self, path: Path) -> None:
        """Writes it in the format that the suffix says; panels without anything are left out."""
        for axes in self.panels:
            axes.set_visible(axes.has_data())
        self.figure.savefig(path, dpi=150)
