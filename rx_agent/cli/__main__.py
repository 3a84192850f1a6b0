"""``python -m rx_agent.cli`` is ``rx-agent``."""

from __future__ import annotations

import sys

from rx_agent.cli import main

sys.exit(main())
