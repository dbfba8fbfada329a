"""One bar over all points."""

from __future__ import annotations

import sys
from types import TracebackType


def say(text: str) -> None:
    """Print a message on standard error."""
    print(f"kasuri: {text}", file=sys.stderr, flush=True)


class Bar:
    """A bar with time left, workers and failures; silent unless standard error is a terminal."""

    def __init__(self, total: int, done: int):
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        console = Console(stderr=True)
        self._progress = Progress(
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} runs,"),
            TimeElapsedColumn(),
            TextColumn("elapsed, {task.fields[left]} left, {task.fields[workers]} workers, {task.fields[failures]} failures"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", total=total, completed=done, left="?", workers=0, failures=0)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._progress.stop()

    def show(self, done: int, seconds_left: float, workers: int, failures: int) -> None:
        """Show how far the sweep is. `seconds_left` is time of the clock."""
        minutes, seconds = divmod(round(seconds_left), 60)
        left = f"{minutes // 60}:{minutes % 60:02}:{seconds:02}" if workers else "?"
        self._progress.update(self._task, completed=done, left=left, workers=workers, failures=failures)
