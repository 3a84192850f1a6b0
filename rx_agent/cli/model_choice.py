"""Which model the command line means."""

from __future__ import annotations

from collections.abc import Mapping

from rx_agent.cli.arguments import Options
from rx_agent.cli.offline_model import OFFLINE_MODEL
from rx_agent.errors import ConfigurationError
from rx_agent.models import Model
from rx_agent.providers.catalog import api_key_for, first_available, resolve_model, vendor_of


def choose_model(options: Options, env: Mapping[str, str]) -> Model:
    """The model given, else ``RX_AGENT_MODEL``, else the first with a key in ``env``, else the offline one.

    Raises ``ConfigurationError`` for an unknown one, and where its key is missing, naming the variable.

    >>> choose_model(Options(), {}).id
    'offline'
    """
    name = options.model or env.get("RX_AGENT_MODEL", "").strip() or None
    if options.base_url is not None and not options.base_url.startswith(("http://", "https://")):
        raise ConfigurationError(f"--base-url {options.base_url}: must begin with http:// or https://")
    if name is None and options.base_url:
        raise ConfigurationError("--base-url needs the model's name too: --model ID")
    if name in ("offline", "offline:offline"):
        if options.base_url:
            raise ConfigurationError("the offline model has no server; leave --base-url out")
        return OFFLINE_MODEL
    model = resolve_model(name, options.base_url) if name else first_available(env)
    if model is None:
        return OFFLINE_MODEL
    vendor = vendor_of(model.provider)
    if vendor is not None and vendor.needs_key and model.base_url == vendor.base_url:
        api_key_for(model.provider, env)
    return model.model_copy(update={"cost": options.prices}) if options.prices else model
