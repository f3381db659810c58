"""The command `streamparse_run`: runs one component over Storm's pipe, in a process of its own."""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

RESOURCES_PATH = "resources"
"""The folder with the code, below the folder in which Storm starts a component."""


def main() -> None:
    """Imports the class that the command line names and runs it."""
    parser = argparse.ArgumentParser(prog="streamparse_run", description="Run a spout or bolt for Storm.")
    parser.add_argument("target_class", help="module.Class of the component")
    parser.add_argument("-s", "--serializer", choices=("json", "msgpack"), default="json", help="form of the messages")
    # Storm gives all as one argument.
    given = parser.parse_args([word for argument in sys.argv[1:] for word in argument.split()])
    module, _, name = given.target_class.rpartition(".")
    if not module:
        parser.error(f"{given.target_class!r} is not module.Class")
    resources = Path.cwd() / RESOURCES_PATH
    inside = resources.joinpath(*module.split(".")).with_suffix(".py").is_file()
    sys.path.append(str(resources if inside else Path.cwd()))
    getattr(importlib.import_module(module), name)(serializer=given.serializer).run()
