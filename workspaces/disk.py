"""The disk below the files: what was written survives the end of the process, what was flushed a power cut too."""

from __future__ import annotations

import errno
import fcntl
import os
import sys


def flush(descriptor: int) -> None:
    """Return once what was written to a file is on the disk, with what is needed to read it back. Raises OSError."""
    if sys.platform == "darwin":
        try:
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)  # fsync leaves it in the cache of the drive there
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            os.fsync(descriptor)  # a network share
    else:
        os.fdatasync(descriptor)
