"""Medians, and the table that shows them."""
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Row(NamedTuple):
    """One line of the table: a figure, what it is compared with, and their ratio."""

    what: str
    figure: str
    beside: str = ""
    ratio: str = ""


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def spread(values: Sequence[float], unit: str) -> str:
    """The median, with the least and the greatest value: a median alone hides a noisy machine."""
    return f"{median(values):.1f} {unit} ({min(values):.1f} to {max(values):.1f})"


def ratio(value: float, other: float) -> str:
    return f"{value / other:.2f}"


def show(title: str, rows: Sequence[Row]) -> None:
    """Prints the rows below a title, in columns."""
    print(f"\n{title}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(Row._fields))]
    for row in rows:
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths))
        print(f"  {line}".rstrip(), flush=True)
