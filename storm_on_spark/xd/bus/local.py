"""The local bus: journals of files, in a folder that all containers share.

<bus>/<stream>-<id>/<module>/<n>/                   the journal of an instance
<bus>/<stream>-<id>/<module>/<n>/readers/<reader>   how far an instance has read it
<bus>/<stream>-<id>/<module>/<n>/claims/            of a queue: who has which record
<bus>/<stream>-<id>/<module>/<n>/dead-letters/
<bus>/<stream>-<id>/<module>/base-*                 where the instances of a deployment began
<bus>/channels/<kind>.<name>/<stream>-<id>.<module> an empty file for each module that sends to the channel

Messages of a channel stay in the journals of the modules that sent them: a channel is a list of modules.

The size of a journal is limited. If readers that must get every message (the next module, and readers of a queue) are
that far behind, the instance waits. It does not wait for taps and readers of a topic: beyond the limit, the oldest
records are removed, and those readers miss them.

The journals of a destroyed stream stay for a while, for streams that tap it, and until its queues are empty.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from storm_on_spark.xd.bus.claims import Claims, forget_claims, unclaimed_from
from storm_on_spark.xd.bus.files import Read, readers, write_whole
from storm_on_spark.xd.bus.inputs import Inputs, Share, beginning, ends, numbered
from storm_on_spark.xd.bus.journal import Journal, Positions, Record
from storm_on_spark.xd.bus.port import (
    Alive,
    ChannelFeed,
    Feed,
    Input,
    Letter,
    ModuleFeed,
    Place,
    TapFeed,
    from_now_on,
    letter_body,
)
from storm_on_spark.xd.dsl import Channel

logger = logging.getLogger(__name__)

_CHANNELS: Final = "channels"
_CLUSTER: Final = ".cluster"
"""The file with the installation's name; no module's label begins with a dot."""
_STREAM: Final = re.compile(r".+-[0-9a-f]+-[0-9a-f]+")
_SWEEP_SECS: Final = 30.0
_ADOPT_SECS: Final = 600.0
_UPKEEP_SECS: Final = 2.0
_FULL_UPKEEP_SECS: Final = 0.2


class LocalBus:
    """The bus of a container.

    A stream's folder has the name of the installation that ran it. A container removes what a destroyed stream of its
    own installation has left, even if the containers that ran the stream have ended. It never removes data of another
    installation at the same place.

    Args:
        folder: that all containers share.
        most_bytes: limit of a journal's unread messages.
        keep_secs: how long the journals of a destroyed stream stay.
        exists: whether a stream, by its name on the bus, still exists.
        alive: whether an instance may continue.
        sync: whether journals and the files beside them must survive the loss of the machine.
        cluster: distinguishes this installation from others at the same place; empty while it is unknown.
        clock: seconds.
    """

    def __init__(
        self,
        folder: Path,
        *,
        most_bytes: int,
        keep_secs: float = 600.0,
        exists: Callable[[str], bool] = lambda stream: True,
        alive: Alive = lambda name: True,
        sync: bool = False,
        cluster: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.cluster = cluster
        self.folder = folder
        self.sync = sync
        self.most_bytes = most_bytes
        self.alive = alive
        self.clock = clock
        self.keep_secs = keep_secs
        self.exists = exists
        self._lock = threading.Lock()
        #: Streams that had an instance here, and since when they are known to be destroyed.
        self._streams: dict[str, float | None] = {}
        #: Streams whose folders have the installation's name.
        self._marked: set[str] = set()
        self._looked: float | None = None
        self._ended = threading.Event()
        self._sweeper = threading.Thread(target=self._run, name="xd-bus-sweeper", daemon=True)
        self._sweeper.start()

    def port(self, place: Place) -> LocalPort:
        """See `Bus`."""
        with self._lock:
            self._streams[place.stream] = None
        return LocalPort(self, place)

    def close(self) -> None:
        """Closes the bus."""
        self._ended.set()
        self._sweeper.join()

    def sweep(self) -> None:
        """Removes the journals of streams that were destroyed some time ago, and whose queues are empty."""
        if cluster := self.cluster():
            self._mark(cluster)
            self._adopt(cluster)
        with self._lock:
            streams = dict(self._streams)
        for stream, since in streams.items():
            if self.exists(stream):
                continue
            now = self.clock()
            if since is None:
                self._streams[stream] = now
            elif now - since >= self.keep_secs and not self._in_queues(stream):
                logger.info("removing what the destroyed stream %s left behind", stream)
                for _, sender in self._sent(stream):
                    sender.unlink(missing_ok=True)
                # Another container that ran the stream may just be removing it.
                with contextlib.suppress(FileNotFoundError):
                    shutil.rmtree(self.folder / stream)
                with self._lock:
                    self._streams.pop(stream, None)
                    self._marked.discard(stream)

    def _mark(self, cluster: str) -> None:
        """Writes the installation's name to the folders of the streams that are run here."""
        with self._lock:
            new = set(self._streams) - self._marked
        for stream in new:
            write_whole(self.folder / stream / _CLUSTER, cluster.encode())
            self._marked.add(stream)

    def _adopt(self, cluster: str) -> None:
        """Handles destroyed streams of this installation that no container runs: at once, and then seldom."""
        now = self.clock()
        if self._looked is not None and now - self._looked < max(_ADOPT_SECS, self.keep_secs):
            return
        self._looked = now
        with contextlib.suppress(FileNotFoundError):
            for name in [path.name for path in self.folder.iterdir() if _STREAM.fullmatch(path.name)]:
                with contextlib.suppress(FileNotFoundError):
                    own = (self.folder / name / _CLUSTER).read_bytes() == cluster.encode()
                    if own and not self.exists(name):
                        with self._lock:
                            self._streams.setdefault(name, now)

    def _run(self) -> None:
        while not self._ended.wait(_SWEEP_SECS):
            try:
                self.sweep()
            except Exception:
                logger.warning("the remains of destroyed streams are removed later", exc_info=True)

    def _sent(self, stream: str) -> list[tuple[str, Path]]:
        """Returns the channels that modules of a stream send to, each with the file that records it."""
        try:
            channels = list((self.folder / _CHANNELS).iterdir())
            return [
                (channel.name, sender)
                for channel in channels
                for sender in channel.iterdir()
                if sender.name.partition(".")[0] == stream
            ]
        except FileNotFoundError:
            return []

    def _in_queues(self, stream: str) -> bool:
        """Whether a stream has sent messages to a queue that have not been read yet."""
        labels = {sender.name.partition(".")[2] for name, sender in self._sent(stream) if name.startswith("queue.")}
        for label in labels:
            for folder in numbered(self.folder / stream / label).values():
                journal = Journal(folder)
                behind = journal.last() + 1
                if unclaimed_from(folder, journal.first() or behind, behind) < behind:
                    return True
        return False

    def journals(self, feed: Feed) -> Mapping[str, Path]:
        """Returns name -> folder of the existing journals of a feed."""
        if isinstance(feed, ModuleFeed):
            return numbered(self.folder / feed.stream / feed.label)
        found: dict[str, Path] = {}
        for stream, label in self._modules(feed):
            found |= numbered(self.folder / stream / label, f"{stream}.{label}.")
        return found

    def channel(self, channel: Channel) -> Path:
        """Returns the folder that lists the senders to a channel."""
        return self.folder / _CHANNELS / f"{channel.kind}.{channel.name}"

    def _modules(self, feed: TapFeed | ChannelFeed) -> list[tuple[str, str]]:
        """Returns stream and label of the modules that write a feed."""
        try:
            if isinstance(feed, ChannelFeed):
                names = sorted(path.name for path in self.channel(feed.channel).iterdir())
                return [(stream, label) for stream, _, label in (name.partition(".") for name in names) if label]
            own = re.compile(re.escape(feed.stream) + r"-[0-9a-f]+-[0-9a-f]+")
            streams = sorted(path.name for path in self.folder.iterdir() if own.fullmatch(path.name))
        except FileNotFoundError:
            return []
        return [(stream, feed.label) for stream in streams]


class LocalPort:
    """A place on the bus; see `Port`.

    Args:
        bus: the bus.
        place: the place.
    """

    def __init__(self, bus: LocalBus, place: Place) -> None:
        self._bus = bus
        self._place = place
        self._module = bus.folder / place.stream / place.label
        self._journal = Journal(self._module / str(place.sequence), sync=bus.sync)
        self._number = 0
        self._inputs: Inputs | None = None
        #: Number -> bytes, of the existing records.
        self._sizes: dict[int, int] = {}
        #: The first record that a required reader has not read yet.
        self._needed = 0
        self._unread = 0
        #: Records before this one are old enough that each of their readers has registered.
        self._old = 0
        #: When readers were last checked, and the number of the next record at that time.
        self._mark = (0.0, 0)
        self._kept_up: float | None = None
        #: Positions of inputs that a bolt holds, and of the inputs after them; None if none is held.
        self._held: Positions | None = None

    @property
    def positions(self) -> Positions:
        """See `Port`."""
        return {} if self._inputs is None else self._inputs.positions

    def open(self) -> Record | None:
        """See `Port`."""
        place, bus = self._place, self._bus
        self._number, self._kept_up, self._held = self._journal.last(), None, None
        self._old, self._mark = 0, (bus.clock(), 0)
        record = self._journal.read(self._number)
        self._sizes = self._journal.sizes()
        if place.output is not None:
            write_whole(bus.channel(place.output) / f"{place.stream}.{place.label}", b"", sync=bus.sync)
        if place.input is not None:
            self._inputs = self._reading(place.input, record)
            self._inputs.look()
        return record

    def next(self, most: int) -> Iterator[Input]:
        """See `Port`."""
        assert self._inputs is not None
        return self._inputs.next(most)

    def pass_by(self, positions: Positions) -> None:
        """See `Port`."""
        assert self._inputs is not None
        self._inputs.positions = dict(positions)

    def commit(self, record: Record, read: Positions, letters: Sequence[Letter] = ()) -> None:
        """See `Port`."""
        for index, letter in enumerate(letters):
            # A repeated step writes it to the same place.
            body = json.dumps(letter_body(letter), ensure_ascii=False).encode()
            name = f"{self._number + 1:012}-{index:04}.json"
            write_whole(self._journal.folder / "dead-letters" / name, body, sync=self._bus.sync)
        size = self._journal.append(self._number + 1, record)
        self._number += 1
        self._sizes[self._number] = size
        self._unread += size
        if self._inputs is not None:
            self._inputs.positions = dict(read)
            self._held = None if record.positions == read else record.positions

    def full(self) -> bool:
        """See `Port`."""
        return self._holds_back and self._unread > self._bus.most_bytes

    def upkeep(self) -> None:
        """Records how far the instance has read, and removes the records that all readers have read."""
        now = self._bus.clock()
        pause = _FULL_UPKEEP_SECS if self.full() else _UPKEEP_SECS
        if self._kept_up is not None and now - self._kept_up < pause:
            return
        self._kept_up = now
        if now - self._mark[0] >= _UPKEEP_SECS:
            self._old, self._mark = self._mark[1], (now, self._number + 1)
        if self._inputs is not None:
            self._inputs.publish(self._held)
        self._trim()

    def close(self) -> None:
        """Records how far the instance has read."""
        if self._inputs is not None:
            self._inputs.publish(self._held)

    @property
    def _holds_back(self) -> bool:
        output = self._place.output
        return bool(self._place.readers) or (output is not None and output.kind == "queue")

    def _reading(self, feed: Feed, record: Record | None) -> Inputs:
        place, bus = self._place, self._bus

        def first() -> Positions:
            return ends(bus.journals(feed)) if from_now_on(feed) else {}

        share = Share(place.sequence, place.count)
        claims: Claims | None
        if isinstance(feed, ChannelFeed) and feed.shared:
            claims = Claims(bus.folder, place.name, bus.alive, bus.clock, sync=bus.sync)
            share = Share(1, 1)
            positions = {} if record is None else record.positions
        else:
            claims = None
            positions = beginning(self._module, (place.generation, place.count), record, first)
        return Inputs(lambda: bus.journals(feed), place.name, positions, share, claims, place.generation, bus.clock)

    def _trim(self) -> None:
        """Removes records, except the last one, which has the state."""
        behind, folder = self._number + 1, self._journal.folder
        output, required = self._place.output, set(self._place.readers)
        # If the reader runs in every container, only its first instance is known in advance.
        own = {_module(name) for name in required}
        found = _current(readers(folder), required)
        needed = min((found[name] for name in found if _module(name) in own), default=behind)
        if not required <= found.keys():
            needed = 0
        if output is not None and output.kind == "queue":
            needed = unclaimed_from(folder, max(self._needed, min(self._sizes, default=1)), behind)
        self._needed = needed
        self._unread = sum(size for number, size in self._sizes.items() if number >= needed)
        loose = min((number for name, number in found.items() if _module(name) not in own), default=behind)
        kept = 0
        for number in sorted(self._sizes, reverse=True):
            kept += self._sizes[number]
            old = number < min(loose, self._old) or kept > self._bus.most_bytes
            if number < needed and old and number != self._number:
                self._journal.remove(number)
                forget_claims(folder, number)
                del self._sizes[number]


def _module(reader: str) -> str:
    return reader.rsplit(".", 1)[0]


def _current(found: Mapping[str, Read], required: set[str]) -> dict[str, int]:
    """Returns the positions of readers, without instances of earlier deployments that no longer exist."""
    newest: dict[str, int] = {}
    for name, read in found.items():
        newest[_module(name)] = max(read.generation, newest.get(_module(name), 0))
    return {
        name: read.number
        for name, read in found.items()
        if read.generation == newest[_module(name)] or name in required
    }
