"""Providers: one module per wire API, each giving a :class:`~rx_agent.providers.base.StreamFunction`."""
