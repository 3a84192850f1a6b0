"""Which function speaks which wire API. A provider's module is imported when it is first asked for."""

from __future__ import annotations

import difflib
import importlib
from typing import cast

from rx_agent.errors import ConfigurationError
from rx_agent.models import Model
from rx_agent.providers.base import StreamFunction

_LAZY: dict[str, str] = {
    api: f"rx_agent.providers.{api}:stream"
    for api in ("anthropic", "google", "openai_chat", "openai_responses")
}
_LOADED: dict[str, StreamFunction] = {}


def register_api(api: str, stream: StreamFunction | str) -> None:
    """Makes ``Model.api == api`` mean ``stream``; also replaces a built-in one.

    ``stream`` may be ``"package.module:attribute"``, imported when it is first needed.

    >>> from rx_agent.providers.scripted import scripted
    >>> register_api("my_api", scripted([]))
    """
    if isinstance(stream, str):
        if ":" not in stream:
            raise ConfigurationError(f"{stream!r} is not of the form 'package.module:attribute'")
        _LOADED.pop(api, None)
        _LAZY[api] = stream
    else:
        _LOADED[api] = stream


def known_apis() -> tuple[str, ...]:
    """The names that ``Model.api`` may have, sorted."""
    return tuple(sorted({*_LAZY, *_LOADED}))


def stream_function_for(model: Model) -> StreamFunction:
    """The function that speaks ``model.api``. Raises ``ConfigurationError`` naming the nearest for an
    unknown one.

    >>> stream_function_for(Model(id="m", api="openai_chat", provider="openai")).needs_event_loop
    True
    """
    function = _LOADED.get(model.api)
    if function is None:
        if model.api not in _LAZY:
            names = difflib.get_close_matches(model.api, known_apis(), cutoff=0.4) or known_apis()
            raise ConfigurationError(
                f"api {model.api!r} of model {model.id!r} is unknown; did you mean {' or '.join(names)}? "
                "Your own is made known with register_api(name, stream)."
            )
        module, _, attribute = _LAZY[model.api].partition(":")
        function = cast(StreamFunction, getattr(importlib.import_module(module), attribute))
        _LOADED[model.api] = function
    return function
