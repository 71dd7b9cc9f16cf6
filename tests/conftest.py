"""What every test can rely on, however the suite was started."""

from __future__ import annotations

import signal

# A suite started in the background of a script inherits these ignored, and so would every command it tests.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
