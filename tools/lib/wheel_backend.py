"""What pip builds the wheel by: scikit-build-core, whose wheel then gets the tag that its binaries allow."""

from pathlib import Path

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403  all hooks of a backend; the one below replaces its namesake
from wheel_tag import with_oldest_tag


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = build.build_wheel(wheel_directory, config_settings, metadata_directory)
    return with_oldest_tag(Path(wheel_directory) / name).name
