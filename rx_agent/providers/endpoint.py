"""Where a request goes and with which key: the same for every wire API but for the header's name."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from rx_agent.models import Model
from rx_agent.providers.base import StreamOptions
from rx_agent.providers.catalog import vendor_of
from rx_agent.providers.http_request import WireRequest
from rx_agent.providers.wire_json import WirePayload


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A path below the model's base URL, with the headers of the request. ``key`` is in ``headers`` already."""

    url: str
    headers: dict[str, str] = field(repr=False)
    key: str | None = field(repr=False)
    key_variable: str | None
    needs_key: bool

    def post(self, payload: WirePayload) -> WireRequest:
        """The POST of ``payload``."""
        return WireRequest(self.url, payload, self.headers, self.key, self.key_variable, self.needs_key)


def endpoint(
    model: Model,
    options: StreamOptions,
    path: str,
    *,
    key_header: str = "authorization",
    scheme: str = "Bearer ",
) -> Endpoint:
    """``path`` (no leading slash, may end in a query) below the base URL of ``model`` or its vendor.

    The key is that of ``options``, else of the vendor's environment variable, unless the model's or the
    request's own headers carry one. Raises ``ValueError`` where no base URL is known.
    """
    vendor = vendor_of(model.provider)
    base_url = model.base_url or (vendor.base_url if vendor else "")
    if not base_url:
        raise ValueError(f"Model {model.id!r} of provider {model.provider!r} has no base_url; give it one.")
    variable = vendor.key_variable if vendor else None
    key = (options.api_key or (os.environ.get(variable) if variable else None) or "").strip() or None
    headers = {**model.headers, **options.headers}
    has_key = any(name.lower() == key_header for name in headers)
    if key and not has_key:
        headers[key_header] = f"{scheme}{key}"
    address, mark, query = base_url.partition("?")
    path, own_mark, own_query = path.partition("?")
    queries = "&".join(part for part in (own_query, query) if part)
    return Endpoint(
        url=f"{address.rstrip('/')}/{path}{mark or own_mark}{queries}",
        headers=headers,
        key=key,
        key_variable=variable,
        # Whoever runs a server of their own, or sends other headers, knows whether it wants a key.
        needs_key=vendor is not None and vendor.needs_key and base_url == vendor.base_url and not has_key,
    )
