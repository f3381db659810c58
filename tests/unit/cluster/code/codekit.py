"""What the tests of code distribution share: a small topology's artifacts, and a server that hands them out."""

from __future__ import annotations

import contextlib
import random
import re
import shutil
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType

from cluster_records import manifest

from storm_on_spark.cluster.code.checksums import artifacts_of
from storm_on_spark.cluster.code.distributor import Metafile
from storm_on_spark.cluster.code.packing.bundle import pack
from storm_on_spark.cluster.records import CodeManifest

TOPOLOGY = "word-count-1-1700000000"


def packed(folder: Path, size: int = 3_000_000) -> Path:
    """Packs a topology whose archive has about `size` bytes, and returns where."""
    source = folder.with_name(f"{folder.name}-source")
    source.mkdir(parents=True)
    (source / "words.py").write_text("import noise\n\ntopology = None\n")
    # Incompressible, so that the archive is as large as it should be; the same every time.
    (source / "noise").mkdir()
    (source / "noise" / "__init__.py").touch()
    (source / "noise" / "data.bin").write_bytes(_noise(size))
    pack(str(source / "words.py"), folder, conf={"topology.workers": 2}, plan={"stages": []})
    shutil.rmtree(source)
    return folder


def _noise(size: int) -> bytes:
    return random.Random(7).randbytes(size)


def manifest_of(folder: Path, topology_id: str = TOPOLOGY) -> CodeManifest:
    return manifest(topology_id, artifacts=artifacts_of(folder), metafile=metafile_of(folder))


def metafile_of(folder: Path) -> str:
    return Metafile(location="nimbus", artifacts=artifacts_of(folder)).to_text()


def same(left: Path, right: Path) -> bool:
    return {p.name: p.read_bytes() for p in left.iterdir()} == {p.name: p.read_bytes() for p in right.iterdir()}


class CodeServer:
    """Serves `root/<topology id>/<artifact>` as a Nimbus does, with Range, and misbehaves on demand.

    Attributes:
        cuts: for each coming response, after how many bytes of its body the connection is cut.
        requests: (artifact, Range header) in the order in which they came.
        headers: of the last request.
        answer: if set, takes (path, Range) and returns (status, headers, body) instead of what is right.
        change: changes what is sent.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.cuts: list[int] = []
        self.requests: list[tuple[str, str | None]] = []
        self.headers: dict[str, str] = {}
        self.ranges = True
        self.answer: Callable[[str, str | None], tuple[int, dict[str, str], bytes]] | None = None
        self.change: Callable[[bytes], bytes] = bytes
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def serve(self, folder: Path, topology_id: str = TOPOLOGY) -> None:
        shutil.copytree(folder, self.root / topology_id)

    def __enter__(self) -> CodeServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def right_answer(self, path: str, range_: str | None) -> tuple[int, dict[str, str], bytes]:
        found = re.fullmatch(r"/api/v1/code/([\w.-]+)/([\w.]+)", path)
        file = self.root / found[1] / found[2] if found else None
        if file is None or not file.is_file():
            return 404, {}, b""
        content = self.change(file.read_bytes())
        start = re.fullmatch(r"bytes=(\d+)-", range_ or "")
        if start is None or not self.ranges:
            return 200, {}, content
        first = int(start[1])
        if first >= len(content):
            return 416, {"Content-Range": f"bytes */{len(content)}"}, b""
        return 206, {"Content-Range": f"bytes {first}-{len(content) - 1}/{len(content)}"}, content[first:]

    def _handler(outer) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                range_ = self.headers.get("Range")
                outer.requests.append((self.path.rpartition("/")[2], range_))
                outer.headers = dict(self.headers)
                status, headers, body = (outer.answer or outer.right_answer)(self.path, range_)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                cut = outer.cuts.pop(0) if outer.cuts else len(body)
                with contextlib.suppress(OSError):
                    self.wfile.write(body[:cut])
                self.close_connection = True

            def log_message(self, *args: object) -> None:
                pass

        return Handler
