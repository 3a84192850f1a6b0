"""Standard input as observables: read when there is something to read, no thread left waiting for a key."""

from __future__ import annotations

import codecs
import errno
import os
import stat
from collections.abc import Iterable, Iterator

import reactivex
from reactivex import Observable, abc
from reactivex import operators as ops
from reactivex.disposable import CompositeDisposable, Disposable, SingleAssignmentDisposable
from reactivex.scheduler import ImmediateScheduler

from rx_agent.asyncio_edge import in_worker_thread, loop_of
from rx_agent.errors import ConfigurationError, NoEventLoopError

_PIECE = 65_536
BURST_SECONDS = 0.05
"""Lines that come closer together than this were pasted or piped as one text."""

MOST_BYTES = 10_000_000
"""How much is taken from a pipe or a file."""


def pieces_of(descriptor: int) -> Observable[bytes]:
    """The bytes that come on ``descriptor``, as they come, to its end. Disposing stops reading at once.

    The descriptor stays blocking: a terminal's standard input and output are one and the same open file, and
    output that does not block loses text.
    """

    def subscribe(
        observer: abc.ObserverBase[bytes], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        loop = loop_of(scheduler)
        if loop is None:
            raise NoEventLoopError(
                "standard input is read on an event loop; subscribe with an AsyncIOScheduler"
            )

        def read() -> None:
            try:
                piece = _read(descriptor)
            except ConfigurationError as error:
                subscription.dispose()
                observer.on_error(error)
                return
            if piece:
                observer.on_next(piece)
            else:
                subscription.dispose()
                observer.on_completed()

        subscription = SingleAssignmentDisposable()
        try:
            loop.add_reader(descriptor, read)
        except OSError:  # a file, which epoll refuses because it is always ready; or none at all
            return _whenever_ready(descriptor).subscribe(observer, scheduler=scheduler)
        except NotImplementedError:  # Windows' loop watches no pipes and consoles
            return _in_threads(descriptor).subscribe(observer, scheduler=scheduler)

        def stop() -> None:
            loop.remove_reader(descriptor)

        subscription.disposable = Disposable(stop)
        return subscription

    return Observable(subscribe)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _PIECE)
    except OSError as error:
        if error.errno in (errno.EIO, errno.EBADF):  # the terminal has hung up; somebody closed it
            return b""
        raise ConfigurationError(f"standard input cannot be read: {error.strerror}") from error


def _whenever_ready(descriptor: int) -> Observable[bytes]:
    """One piece per turn of the loop."""

    def subscribe(
        observer: abc.ObserverBase[bytes], scheduler: abc.SchedulerBase | None = None
    ) -> abc.DisposableBase:
        on = scheduler or ImmediateScheduler.singleton()
        disposed = Disposable()

        def step(*_: object) -> None:
            if disposed.is_disposed:
                return
            try:
                piece = _read(descriptor)
            except ConfigurationError as error:
                observer.on_error(error)
                return
            if piece:
                observer.on_next(piece)
                on.schedule(step)
            else:
                observer.on_completed()

        return CompositeDisposable(disposed, on.schedule(step))

    return Observable(subscribe)


def _in_threads(descriptor: int) -> Observable[bytes]:
    """Each piece read in a daemon thread, where nothing else can wait for input."""
    return in_worker_thread(lambda: _read(descriptor), name="rx_agent standard input").pipe(
        ops.repeat(), ops.take_while(bool)
    )


def text_of(pieces: Observable[bytes]) -> Observable[str]:
    """The pieces decoded as UTF-8; bytes that are none become U+FFFD."""

    def decoded(_: abc.SchedulerBase | None) -> Observable[str]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = reactivex.defer(
            lambda _: reactivex.return_value(decoder.decode(b"", final=True), scheduler=_NOW)
        )
        return pieces.pipe(ops.map(decoder.decode), ops.concat(rest), ops.filter(bool))

    return reactivex.defer(decoded)


_NOW = ImmediateScheduler.singleton()


def bounded(pieces: Observable[bytes]) -> Observable[bytes]:
    """The pieces; an ``on_error(ConfigurationError)`` once they come to more than ``MOST_BYTES``."""

    def counted(before: tuple[int, bytes], piece: bytes) -> tuple[int, bytes]:
        return before[0] + len(piece), piece

    return pieces.pipe(ops.scan(counted, (0, b"")), ops.map(_within_bounds))


def _within_bounds(counted: tuple[int, bytes]) -> bytes:
    size, piece = counted
    if size > MOST_BYTES:
        raise ConfigurationError(
            f"standard input holds more than {MOST_BYTES / 1e6:g} MB, more than a model can read; give a part of it "
            "(head -c), or name the file in the prompt: the agent can search it"
        )
    return piece


def lines_of(text: Observable[str]) -> Observable[str]:
    """Whole lines, without their ends; the last one also where its end is missing."""

    def split(_: abc.SchedulerBase | None) -> Observable[str]:
        begun: list[str] = []

        def ended(piece: str) -> list[str]:
            *whole, rest = piece.replace("\r\n", "\n").split("\n")
            if whole:
                whole[0] = "".join([*begun, whole[0]])
                begun.clear()
            begun.append(rest)
            return whole

        def last() -> list[str]:
            return [line] if (line := "".join(begun)) else []

        return text.pipe(
            ops.flat_map(lambda piece: reactivex.from_iterable(ended(piece), scheduler=_NOW)),
            ops.concat(reactivex.defer(lambda _: reactivex.from_iterable(last(), scheduler=_NOW))),
        )

    return reactivex.defer(split)


def entries_of(
    lines: Observable[str], commands: Iterable[str], scheduler: abc.SchedulerBase
) -> Observable[str]:
    """What the user entered: lines that come in one burst are one text, except that ``commands`` stand alone.

    So a pasted paragraph, or a file on standard input, is one message and not a dozen.
    """
    known = frozenset(commands)

    def bursts(shared: Observable[str]) -> Observable[list[str]]:
        return shared.pipe(ops.buffer(shared.pipe(ops.debounce(BURST_SECONDS, scheduler=scheduler))))

    return lines.pipe(
        ops.publish(bursts),  # pyright: ignore[reportUnknownMemberType, reportArgumentType]
        ops.flat_map(lambda burst: reactivex.from_iterable(_entries(burst, known), scheduler=_NOW)),
    )


def _entries(burst: list[str], commands: frozenset[str]) -> Iterator[str]:
    together: list[str] = []
    for line in [*burst, None]:
        is_command = line is not None and line.split(maxsplit=1)[:1] != [] and line.split()[0] in commands
        if line is not None and not is_command:
            together.append(line)
            continue
        if text := "\n".join(together).strip():
            yield text
        together.clear()
        if line is not None:
            yield line.strip()


def comes_from_a_pipe(descriptor: int) -> bool:
    """Whether ``descriptor`` is a pipe, a socket or a file: something that was put there to be read."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode)
