"""The `memoryd` command: what operators run on the host."""

from __future__ import annotations

import os
import sys

# One BLAS thread: parallelism comes from requests. Set before numpy is loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
# gRPC writes lines of its own on standard error, in a log that machines read; errors say the same.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")


def main() -> int:
    """Run the command; without the daemon's packages, say how to get them."""
    try:
        from memoryd.cli.main import run

        code = run(sys.argv[1:])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "memoryd":
            raise
        print(f"memoryd: {error.name} is not installed; run: pip install 'memoryd[server]'", file=sys.stderr)
        return 1
    # Everything is closed by now. DuckDB's binding would go on to complain on standard error that Python still holds
    # some of its types, in a log that machines read.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
