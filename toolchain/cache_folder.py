"""Where everything that is made once and kept lies: $SLUICE_CACHE. The shell scripts have the same default from say.sh."""

import os
import pathlib


def cache_folder() -> pathlib.Path:
    default = "/var/cache/sluice" if os.geteuid() == 0 else pathlib.Path.home() / ".cache/sluice"
    return pathlib.Path(os.environ.get("SLUICE_CACHE") or default)
