"""The version of the program, in the one place where it stands: the build takes it from here, and so does --version."""

VERSION = "0.1.0"
