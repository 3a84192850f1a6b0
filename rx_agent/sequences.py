"""A sequence that grows without copying: the transcript is shared by every state, request and run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, cast, overload

T = TypeVar("T", covariant=True)


class AppendOnly(Sequence[T], Generic[T]):
    """An immutable sequence; ``plus`` gives a longer one in O(1) amortised, sharing storage.

    Every value is a window (the first n items) on a list that only grows. Growing a window that ends where its
    list ends appends in place; growing an older one copies first, so no window ever changes.

    >>> a = AppendOnly([1, 2])
    >>> b, c = a.plus(3), a.plus(4)
    >>> list(a), list(b), list(c)
    ([1, 2], [1, 2, 3], [1, 2, 4])
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T] = list(items)
        self._length = len(self._items)

    def plus(self, *more: Any) -> AppendOnly[T]:
        """This sequence with ``more`` behind it."""
        if not more:
            return self
        longer = cast(AppendOnly[T], AppendOnly.__new__(AppendOnly))  # pyright: ignore[reportUnknownMemberType]
        longer._items = self._items if self._length == len(self._items) else self._items[: self._length]
        longer._items.extend(more)
        longer._length = self._length + len(more)
        return longer

    def extends(self, shorter: AppendOnly[Any]) -> bool:
        """Whether this is ``shorter`` with something behind it, sharing its storage (a cheap, sure yes)."""
        return self._items is shorter._items and self._length >= shorter._length

    def since(self, start: int) -> tuple[T, ...]:
        """The items from ``start`` on, as a tuple."""
        return tuple(self._items[start : self._length])

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        items = self._items
        return (items[index] for index in range(self._length))

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...
    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return tuple(self._items[position] for position in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} is outside a sequence of {self._length}")
        return self._items[index if index >= 0 else self._length + index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, AppendOnly | list | tuple):
            return len(self) == len(other) and all(  # pyright: ignore[reportUnknownArgumentType]
                mine == theirs
                for mine, theirs in zip(self, other, strict=True)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
            )
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(list(self))
