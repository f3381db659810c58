"""`xd-singlenode` serves its own user, and no other one of the host."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError

from lab.streams.cluster import ROOT, Node

pytestmark = [pytest.mark.integration]


def ask(admin: str, state: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Gives a command as the user with a state folder."""
    return subprocess.run(
        [sys.executable, "-m", "storm_on_spark.cli", "stream", *arguments, "--admin", admin, "--json"],
        env={**os.environ, "PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(state)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def single_node(home: Path, name: str) -> tuple[Node, dict[str, Any]]:
    node = Node(home, name, "xd-singlenode", "--json", "--port", "0", "--dir", str(home / "kept"))
    return node, node.document()


def test_another_user_reaches_neither_the_admin_nor_zookeeper(tmp_path: Path) -> None:
    node, said = single_node(tmp_path, "first")
    with contextlib.closing(node):
        file = Path(said["token_file"])
        assert file.is_relative_to(tmp_path / "state")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        module = {"source": "import os", "file": "x.py", "sha256": "0" * 64}
        assert httpx.post(f"{said['admin']}/modules/sink/evil", json=module).status_code == 401
        assert httpx.get(f"{said['admin']}/openapi.json").status_code == 401
        refused = ask(said["admin"], tmp_path / "of-another-user", "list")
        assert refused.returncode == 1, refused.stdout
        assert "send the cluster's token" in refused.stdout
        stranger = KazooClient(said["zookeeper"])
        stranger.start()
        try:
            with pytest.raises(NoAuthError):
                stranger.get_children("/xd/streams")
            with pytest.raises(NoAuthError):
                stranger.create("/xd/streams/evil", b'{"definition":"time | log"}')
        finally:
            stranger.stop()
            stranger.close()

        made = ask(said["admin"], tmp_path / "state", "create", "ticktock", "--definition", "time | log")
        assert made.returncode == 0, made.stdout
    secret, password = file.read_text().strip(), (tmp_path / "kept" / "zookeeper" / "login").read_text().strip()
    assert secret not in node.said
    assert password not in node.said

    # Its ZooKeeper lets in the next one with the same folder.
    node, said = single_node(tmp_path, "second")
    with contextlib.closing(node):
        listed = json.loads(ask(said["admin"], tmp_path / "state", "list").stdout)
        assert "ticktock" in json.dumps(listed)
