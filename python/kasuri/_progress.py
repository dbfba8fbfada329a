"""How far a sweep is, for people: a bar in a terminal, one in a notebook, a function of the user's own, or nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from kasuri.errors import ConfigError

#: A user's choice: True, False, a function of (finished, planned), or None for a display on terminals and in notebooks.
ProgressOption = bool | Callable[[int, int], object] | None

#: Shorter runs (seconds) need no display.
MIN_SHOWN_SECONDS = 0.5


class Display(Protocol):
    """Shows how many runs are finished; a context manager that cleans up."""

    def __enter__(self) -> Display: ...
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...
    def show(self, finished: int, planned: int) -> None:
        """Show the number of finished runs; 0 of 0 while the experiment is being checked."""


def display(wish: ProgressOption) -> Display:
    """Choose the display for a wish.

    Raises
    ------
    ConfigError
        The wish is neither a truth value nor a function.
    """
    if wish is not None and not isinstance(wish, bool) and not callable(wish):
        raise ConfigError(f"progress: is {wish!r}; it must be true, false, or a function of (finished, planned)")
    if wish is False:
        return Silent()
    if callable(wish):
        return CallbackDisplay(wish)
    if _in_notebook():
        return Notebook()
    if wish or _is_terminal(sys.stderr):
        return Terminal(force=wish is True)
    return Silent()


class Silent:
    """Shows nothing; the others build on it."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Nothing to clean up."""

    def show(self, finished: int, planned: int) -> None:
        """Show nothing."""


class CallbackDisplay(Silent):
    """Calls a function whenever a run more is finished."""

    def __init__(self, tell: Callable[[int, int], object]) -> None:
        self._tell = tell
        self._last: tuple[int, int] | None = None

    def show(self, finished: int, planned: int) -> None:
        """Call the function, where something has changed."""
        if planned and (finished, planned) != self._last:
            self._last = (finished, planned)
            self._tell(finished, planned)


class Terminal(Silent):
    """A bar on standard error, as the command shows it."""

    def __init__(self, *, force: bool = False) -> None:
        self._force = force
        self._begin = time.monotonic()
        self._bar: Any = None

    def show(self, finished: int, planned: int) -> None:
        """Move the bar; it appears after half a second, since short sweeps need none."""
        if self._bar is None and (self._force or time.monotonic() - self._begin > MIN_SHOWN_SECONDS):
            self._bar = self._new_bar()
            self._bar.start()
            self._task = self._bar.add_task("", total=None)
        if self._bar is not None and planned:
            self._bar.update(self._task, completed=finished, total=planned)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _new_bar(self) -> Any:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("runs,"), TimeElapsedColumn(), TextColumn("elapsed,"))
        return Progress(*columns, TimeRemainingColumn(), TextColumn("left"), console=Console(stderr=True), transient=not self._force)


class Notebook(Silent):
    """A bar in the output of the cell."""

    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._shown: tuple[int, int, int] | None = None
        self._handle: Any = None

    def show(self, finished: int, planned: int) -> None:
        """Move the bar, at most once a second unless a run has ended."""
        elapsed = time.monotonic() - self._begin
        state = (finished, planned, int(elapsed))
        if not planned or elapsed < MIN_SHOWN_SECONDS or state == self._shown:
            return
        self._shown = state
        left = f", {_clock(elapsed * (planned - finished) / finished)} left" if finished else ""
        words = f"{finished} of {planned} runs, {_clock(elapsed)} elapsed{left}"
        self._put(f'<progress value="{finished}" max="{planned}" style="width: 20em"></progress> {words}')

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._handle is not None:
            self._put("")

    def _put(self, html: str) -> None:
        from IPython.display import HTML, display  # type: ignore[import-not-found]

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)
        else:
            self._handle.update(HTML(html))


def _in_notebook() -> bool:
    """Return whether a kernel of Jupyter runs this; IPython is then imported already."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None and hasattr(ipython, "get_ipython") else None
    return getattr(shell, "kernel", None) is not None


def _is_terminal(stream: Any) -> bool:
    try:
        return bool(stream.isatty())
    except (AttributeError, ValueError):  # no stream, or a closed one
        return False


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
