"""Which points go to a worker together: long ones alone and first, short ones packed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

#: Seconds that a group costs besides its points: starting the command, a turn through the scheduler.
OVERHEAD = 0.03

#: Overhead stays below this part of a group's time.
PART = 0.05

#: A group that is lost costs at most about this, s.
LONGEST = 20.0

#: Points of one group, at most.
MAX_POINTS = 1000


@dataclass(frozen=True)
class Point:
    """A point that is to be computed.

    Attributes
    ----------
    key : str
        Its key, and `number` its position in the sweep.
    seconds : float
        Its processor time, as the native command estimates it.
    memory : float
        The memory of its process, MiB.
    alone : bool
        Whether it has killed a worker and gets one for itself.
    """

    key: str
    number: int
    seconds: float
    memory: float
    alone: bool = False


class Queue:
    """Unclaimed points, the longest first, and the real times of finished ones."""

    def __init__(self, points: Iterable[Point]):
        self._points = deque(sorted(points, key=lambda point: (-point.seconds, point.number)))
        self._again: deque[Point] = deque()
        self.seconds_left = sum(point.seconds for point in self._points)
        self._estimated = 0.0
        self._taken = 0.0

    def __len__(self) -> int:
        return len(self._points) + len(self._again)

    @property
    def factor(self) -> float:
        """The real time of points over the estimate, learnt while the sweep runs."""
        return self._taken / self._estimated if self._taken > 0 and self._estimated > 0 else 1.0

    def learn(self, point: Point, seconds: float) -> None:
        """Note the time of a point. Old points count less."""
        self._estimated = 0.98 * self._estimated + point.seconds
        self._taken = 0.98 * self._taken + seconds

    def requeue(self, point: Point) -> None:
        """Compute a point again, before the others."""
        self._again.append(point)
        self.seconds_left += point.seconds

    def take(self, threads: int) -> list[Point]:
        """Return the next group for one of `threads` threads, with about the same time as the shares of the others."""
        source = self._again or self._points
        if not source:
            return []
        group = [source.popleft()]
        wanted = min(max(self.seconds_left * self.factor / (4 * max(threads, 1)), OVERHEAD / PART), LONGEST)
        seconds = group[0].seconds * self.factor
        while source and not group[0].alone and not source[0].alone and len(group) < MAX_POINTS:
            seconds += source[0].seconds * self.factor
            if seconds > wanted:
                break
            group.append(source.popleft())
        self.seconds_left = max(self.seconds_left - sum(point.seconds for point in group), 0.0)
        return group

    def clear(self) -> None:
        """Forget all points."""
        self._points.clear()
        self._again.clear()


def alone(point: Point, memory: float = 0.0) -> Point:
    """Return the point for a worker of its own, with at least this much memory, MiB."""
    return replace(point, alone=True, memory=max(point.memory, memory))
