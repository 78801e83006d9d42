"""The daemon. Nothing is imported here: the client loads memoryd.v1 without the server's packages."""

import sys

if sys.version_info < (3, 11):  # noqa: UP036  pip refuses it too, but not what runs from a checkout
    raise SystemExit(f"memoryd needs Python 3.11 or later; this is {sys.version_info[0]}.{sys.version_info[1]}")
