"""The client's side of a sweep on a Dask cluster: hand out points, note results, survive failures."""

from __future__ import annotations

import asyncio
import math
import queue
import threading
import time
import tomllib
import uuid
from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kasuri.errors import ConfigError, ResultsError
from kasuri.executor import store
from kasuri.executor.packing import Point, Queue, alone
from kasuri.executor.progress import Bar, say
from kasuri.executor.task import MEMORY, TOPIC, Answer, Experiment, compute, prepare

if TYPE_CHECKING:
    from distributed import Client, Future

#: A point that has killed its worker so often is set aside.
KILLS = 2

#: Seconds between two looks at the cluster when nothing happens.
POLL_INTERVAL = 0.5

#: Seconds between two events of our own, until one comes back.
ECHO = 0.05

#: Seconds that a worker has for its first answer, and how often it is asked before it is left out.
ANSWER = 10.0
TRIES = 3

#: Seconds without any worker until the user gets a message.
NOTICE_SECONDS = 30.0

#: The causes of a worker's announced end that are not a fault of its points.
ANNOUNCED = "closing-worker"


class LostSchedulerError(Exception):
    """The scheduler has gone."""


@dataclass
class Outcome:
    """The result of a sweep.

    Attributes
    ----------
    computed, reused : int
        Points computed now, and points that another process finished meanwhile.
    set_aside : dict
        The reasons why points were set aside, by key.
    failed : dict
        The messages of points that came to no result, by key.
    stopped : str or None
        Why the sweep ended before all points were done.
    """

    computed: int = 0
    reused: int = 0
    set_aside: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    stopped: str | None = None


@dataclass
class Group:
    """Points that a worker computes together; `worker` has begun with them."""

    points: list[Point]
    future: Future
    worker: str | None = None


class Sweep:
    """Points of an experiment on a cluster."""

    def __init__(self, client: Client, experiment: Experiment, points: list[Point], finished: int = 0):
        self.client = client
        self.experiment = experiment
        self.waiting = Queue(points)
        self.total = len(points) + finished
        self.done = finished
        self.groups: dict[str, Group] = {}
        self.outcome = Outcome()
        self._out = Path(experiment.out)
        self._kills: Counter[str] = Counter()
        self._number = 0
        self._workers: dict[str, Any] = {}
        # Workers that can compute, those that cannot with the reason, and how often others have not answered.
        self._fit: set[str] = set()
        self._left_out: dict[str, str] = {}
        self._silent: Counter[str] = Counter()
        self._last_worker = time.monotonic()
        # Messages of the client's threads: ("done", group) and ("event", message).
        self._news: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()

    def run(self) -> Outcome:
        """Compute all points.

        Raises
        ------
        ConfigError
            The workers cannot compute this experiment.
        LostSchedulerError
            The scheduler has gone; finished points are kept.
        KeyboardInterrupt
            The user interrupted; queued points are cancelled, finished ones are kept.
        """
        self._subscribe()
        self._refresh()
        self._check_workers()
        with Bar(self.total, self.done) as bar:
            try:
                while (len(self.waiting) or self.groups) and self.outcome.stopped is None:
                    self._check_workers()
                    self._hand_out()
                    self._listen()
                    self._report_waiting()
                    seconds = (self.waiting.seconds_left + self._seconds_under_way()) * self.waiting.factor
                    failures = len(self.outcome.failed) + len(self.outcome.set_aside)
                    bar.show(self.done, seconds / max(self._threads(), 1), len(self._workers), failures)
            finally:
                self._leave()
        return self.outcome

    def _subscribe(self) -> None:
        """Subscribe to the events of the cluster.

        A subscription goes to the scheduler by another way than a question, and may come there after it. A worker that registers between
        a look at the workers and the subscription would never be heard of, so this waits until an event of our own comes back.
        """
        heard, mark = threading.Event(), uuid.uuid4().hex

        def receive(event: tuple[float, Any]) -> None:
            if event[1].get("mark") == mark:
                heard.set()
            else:
                self._news.put(("begun", event[1]))

        self.client.subscribe_topic("all", lambda event: self._news.put(("event", event[1])))
        self.client.subscribe_topic(TOPIC, receive)
        while not heard.is_set():
            self._check_scheduler()
            self.client.log_event(TOPIC, {"mark": mark})
            heard.wait(ECHO)

    def _check_scheduler(self) -> None:
        if self.client.status not in ("running", "connecting"):
            raise LostSchedulerError(f"the Dask scheduler at {self.client.scheduler.address if self.client.scheduler else '?'} has gone")

    def _check_workers(self) -> None:
        """Ask workers that are new. Those of another version are left out; the experiment's files go to those that share no folder."""
        new = [worker for worker in self._workers if worker not in self._fit and worker not in self._left_out]
        if not new:
            return
        answers = self._ask(new)
        self._refresh()
        given = False
        for worker in new:
            answer = answers[worker]
            if worker not in self._workers:
                continue
            if isinstance(answer, BaseException):
                self._silent[worker] += 1
                if self._silent[worker] >= TRIES:
                    reason = f"no answer within {ANSWER:g} s" if isinstance(answer, TimeoutError) else f"{type(answer).__name__}: {answer}"
                    self._refuse(worker, reason)
            elif answer["refused"]:
                self._refuse(worker, answer["refused"])
            else:
                self._fit.add(worker)
                given |= answer["given"]
                if not answer["shared"]:
                    self._send_contents()
        # Dask does not retry tasks that no worker could take when a worker gets its memory only now.
        if given:
            self._rebalance()

    def _ask(self, workers: list[str]) -> dict[str, Any]:
        """Ask workers for their state. One that dies meanwhile may never answer: the others do not wait for it."""

        async def ask(worker: str) -> Any:
            asked = self.client._run(prepare, asdict(self.experiment), workers=[worker], on_error="return")
            return (await asyncio.wait_for(asked, ANSWER)).get(worker, OSError("it has gone"))

        async def ask_all() -> list[Any]:
            return await asyncio.gather(*map(ask, workers), return_exceptions=True)

        return dict(zip(workers, self.client.sync(ask_all), strict=True))

    def _refuse(self, worker: str, reason: str) -> None:
        if not self._leave_out(worker, reason):
            raise ConfigError(f"the worker {worker} is refused: {reason}")

    def _leave_out(self, worker: str, reason: str) -> bool:
        """Give a worker nothing more. Is there any other?"""
        if worker not in self._left_out:
            self._fit.discard(worker)
            self._left_out[worker] = reason
            others = self._workers.keys() - self._left_out.keys()
            if not others:
                return False
            say(f"the worker {worker} is left out: {reason}")
            self._rebalance()
        return bool(self._workers.keys() - self._left_out.keys())

    def _rebalance(self) -> None:
        """Take back groups that no worker is known to have begun; those begun meanwhile are claimed in the store."""
        waiting = [name for name, group in self.groups.items() if group.worker is None and group.future.status == "pending"]
        self.client.cancel([self.groups[name].future for name in waiting], force=True)
        for name in waiting:
            self._requeue(self.groups.pop(name).points)

    def _send_contents(self) -> None:
        """Send the experiment's files with every group from now on."""
        if self.experiment.contents is not None:
            return
        file = Path(self.experiment.file)
        contents = {file.name: file.read_bytes()}
        # An effective.toml names the copies of its files.
        copies = tomllib.loads(contents[file.name].decode()).get("record", {}).get("files", {})
        for name in (copies.get(name, name) for name in _named_files(self._out)):
            if Path(name).is_absolute():
                raise ConfigError(
                    f"{file}: names the file {name} by its absolute path, and the workers do not share the folder {self._out}; "
                    "name it relative to the experiment file, or give --out a folder that all machines see"
                )
            contents[name] = (file.parent / name).read_bytes()
        say("the workers do not see the folder of results: they return their results")
        self.experiment = replace(self.experiment, contents=contents)

    def _refresh(self) -> None:
        self._workers = dict(self.client.scheduler_info(n_workers=-1)["workers"])
        self._fit &= self._workers.keys()
        self._left_out = {worker: reason for worker, reason in self._left_out.items() if worker in self._workers}

    def _threads(self) -> int:
        return sum(worker["nthreads"] for address, worker in self._workers.items() if address not in self._left_out)

    def _seconds_under_way(self) -> float:
        return sum(point.seconds for group in self.groups.values() for point in group.points)

    def _hand_out(self) -> None:
        """Keep enough groups at the scheduler for every thread to continue: a million futures would only cost memory."""
        threads = self._threads()
        while len(self.groups) < 2 * threads + 2:
            points = self.waiting.take(threads)
            if not points:
                return
            self._number += 1
            name = f"kasuri-{self._number}-{points[0].key}"
            future = self.client.submit(
                compute,
                asdict(self.experiment),
                [(point.key, point.number) for point in points],
                name,
                key=name,
                pure=False,
                resources={MEMORY: self._memory(points)},
                priority=-self._number,
                workers=sorted(self._workers.keys() - self._left_out.keys()) if self._left_out else None,
            )
            self.groups[name] = Group(points, future)
            future.add_done_callback(lambda _, name=name: self._news.put(("done", name)))

    def _memory(self, points: list[Point]) -> float:
        """Return the memory to request for a group: at most that of the largest worker, otherwise it would wait forever."""
        fit = (worker for address, worker in self._workers.items() if address not in self._left_out)
        largest = max((worker.get("resources", {}).get(MEMORY, 0.0) for worker in fit), default=0.0)
        wanted = max(point.memory for point in points)
        return min(wanted, largest) if largest else wanted

    def _listen(self) -> None:
        """Wait for news, and take all there are."""
        try:
            news = [self._news.get(timeout=POLL_INTERVAL)]
        except queue.Empty:
            news = []
        while not self._news.empty():
            news.append(self._news.get())
        for kind, what in news:
            if kind == "done":
                self._take(what)
            elif kind == "begun":
                if what.get("group") in self.groups:
                    self.groups[what["group"]].worker = what["worker"]
            elif what.get("action") == "remove-worker":
                self._worker_lost(what)
            if kind == "event" and what.get("action") == "remove-worker":
                # One that comes again under the same address is another one.
                self._fit.discard(what["worker"])
                self._silent.pop(what["worker"], None)
                self._refresh()
                # Groups that are bound to workers would wait for those that have gone.
                if self._left_out:
                    self._rebalance()
            if kind == "event" and what.get("action") == "add-worker":
                self._refresh()
        self._check_scheduler()

    def _report_waiting(self) -> None:
        """Print once that no worker computes: a batch system may hold jobs back."""
        if self._workers:
            self._last_worker = time.monotonic()
        elif time.monotonic() - self._last_worker > NOTICE_SECONDS:
            self._last_worker = math.inf
            say(f"no worker has come for {NOTICE_SECONDS:g} s; the runs wait (a batch system says why its jobs wait; Ctrl-C gives up)")

    def _take(self, name: str) -> None:
        """Note the result of a group."""
        group = self.groups.pop(name, None)
        if group is None:
            return
        if group.future.status == "cancelled":
            if self.client.status != "running":
                self.groups[name] = group
                return
            self._requeue(group.points)
        elif group.future.status == "error":
            self._erred(group)
        else:
            self._answered(group, Answer(**group.future.result()))
        group.future.release()

    def _erred(self, group: Group) -> None:
        from distributed import KilledWorker

        error = group.future.exception()
        if not isinstance(error, KilledWorker):
            raise ConfigError(f"a worker cannot compute: {type(error).__name__}: {error}")
        # Dask has tried often enough; the events have named the cause.
        self._requeue(group.points)

    def _answered(self, group: Group, answer: Answer) -> None:
        if answer.files:
            try:
                store.write(self._out, answer.files)
            except OSError as error:
                self.outcome.stopped = f"{self._out}: {error.strerror}: the results cannot be kept"
                return
        known = {point.key: point for point in group.points}
        for key, seconds in answer.seconds.items():
            self.waiting.learn(known[key], seconds)
        self.outcome.computed += len(answer.seconds)
        self.outcome.reused += len(answer.reused)
        self.outcome.failed |= answer.failed
        over = {*answer.seconds, *answer.reused, *answer.failed}
        self.done += len(over)
        rest = [point for point in group.points if point.key not in over]
        if answer.refused == "no folder":
            self._send_contents()
        elif answer.refused:
            self._refuse(answer.worker, answer.refused)
        if answer.unfit and not self._leave_out(answer.worker, answer.unfit):
            self.outcome.stopped = answer.unfit
        if answer.lost:
            self.outcome.stopped = answer.lost
        if answer.killed:
            key, reason, memory = answer.killed
            rest = self._killed(known[key], reason, rest, memory)
        self._requeue(rest)

    def _killed(self, point: Point, reason: str, rest: list[Point], memory: float = 0.0) -> list[Point]:
        """Note that a point has killed its worker; give those of the rest that are to be computed again."""
        self._kills[point.key] += 1
        others = [other for other in rest if other.key != point.key]
        if self._kills[point.key] < KILLS:
            say(f"run {point.key} has killed its worker ({reason}); it is tried once more, alone")
            return [*others, alone(point, 1.5 * memory)]
        self.outcome.set_aside[point.key] = f"killed its worker {KILLS} times: {reason}"
        say(f"run {point.key} is set aside: it has {self.outcome.set_aside[point.key]}")
        self.done += 1
        return others

    def _worker_lost(self, event: dict[str, Any]) -> None:
        """Find out whether a worker died of its own points. Dask computes its groups on another worker."""
        if event.get("expected") or self._was_announced(event["worker"]):
            return
        for name in list(self.groups):
            group = self.groups[name]
            if group.worker != event["worker"] or name not in event.get("processing-tasks", ()):
                continue
            group.worker = None
            unfinished = [point for point in group.points if not (self._out / "runs" / f"{point.key}.json").exists()]
            # Without the folder its progress is unknown; a group of one is conclusive.
            if unfinished and (self.experiment.contents is None or len(group.points) == 1):
                self.client.cancel([group.future], force=True)
                del self.groups[name]
                finished = [point for point in group.points if point not in unfinished]
                self.outcome.computed += len(finished)
                self.done += len(finished)
                self._requeue(self._killed(unfinished[0], f"the worker {event['worker']} has gone without a word", unfinished))

    def _was_announced(self, worker: str) -> bool:
        """Return whether a worker announced its end: to make room for another job, or because its time is over."""
        events = self.client.get_events(worker)
        return any(message.get("action") == ANNOUNCED for _, message in events if isinstance(message, dict))

    def _requeue(self, points: list[Point]) -> None:
        for point in points:
            self.waiting.requeue(point)

    def _leave(self) -> None:
        """Take back the groups at the scheduler; workers stop unneeded ones."""
        self.waiting.clear()
        if self.client.status != "running":
            return
        for topic in (TOPIC, "all"):
            self.client.unsubscribe_topic(topic)
        if self.groups:
            self.client.cancel([group.future for group in self.groups.values()], force=True)


def _named_files(out: Path) -> list[str]:
    """Give the files that the points name, as the list of runs has them."""
    import json

    try:
        with (out / "plan.jsonl").open() as file:
            return list(json.loads(file.readline())["files"])
    except (OSError, ValueError, KeyError) as error:
        raise ResultsError(f"{out / 'plan.jsonl'}: cannot be read: {error}") from error
