"""A store that deltalake reaches: a folder, or a bucket, with small files that are read and written as a whole."""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from storm_on_spark.api.errors import SetupError
from storm_on_spark.api.text.extras import needs_extra
from storm_on_spark.api.text.lines import lines_of

if TYPE_CHECKING:
    from deltalake._internal import DeltaFileSystemHandler

_FIRST: Final = f"_delta_log/{0:020}.json"


class Store:
    """Files below a location, by deltalake's own access to stores.

    Args:
        location: an absolute path, or a URI; access is configured by the environment, as deltalake reads it.

    Raises:
        SetupError: deltalake is not installed, or the location can't be reached.
    """

    def __init__(self, location: str) -> None:
        try:
            from deltalake._internal import DeltaFileSystemHandler
            from deltalake.exceptions import DeltaError
        except ImportError as error:
            raise SetupError(needs_extra("the message bus of Delta", "delta", "deltalake")) from error
        self.location = location.rstrip("/")
        #: Where it is on a disk; None for another store.
        self._folder = None if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", location) else Path(location)
        try:
            if self._folder is not None:
                self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._files: DeltaFileSystemHandler = DeltaFileSystemHandler(self.location)
            self.names("")
        except (DeltaError, OSError, ValueError) as error:
            raise SetupError(f"the message bus of Delta can't reach {location}: {error}") from error

    def uri(self, path: str) -> str:
        """Returns where a file is, as deltalake has it."""
        return f"{self.location}/{path}"

    def read(self, path: str) -> bytes:
        """Returns the contents of a file.

        Raises:
            FileNotFoundError: there is none.
        """
        # Its stubs do not know all of these methods.
        file: Any = self._files.open_input_file(path)
        try:
            return bytes(file.read())
        finally:
            file.close()

    def write(self, path: str, body: bytes) -> None:
        """Writes a file as a whole, in the place of one that is there."""
        file: Any = self._files.open_output_stream(path)
        file.write(body)
        file.close()

    def names(self, path: str) -> list[str]:
        """Returns the names of files and folders in a folder; none if there is no such folder."""
        found: list[Any] = self._files.get_file_info_selector(path, True, False)
        return sorted(info.base_name for info in found)

    def remove(self, path: str) -> None:
        """Removes a file.

        Raises:
            FileNotFoundError: there is none; not all stores say so.
        """
        self._files.delete_file(path)

    def remove_folder(self, path: str) -> None:
        """Removes a folder and what is in it."""
        if self._folder is None:
            self._files.delete_dir(path)
        else:
            # deltalake would leave empty folders.
            shutil.rmtree(self._folder / path, ignore_errors=True)


class StoreFolder:
    """A folder or a file of a store; has the methods of `Path` that a bus needs.

    Args:
        store: the store.
        path: below its location.
    """

    def __init__(self, store: Store, path: str) -> None:
        self.store = store
        self.path = path

    def __repr__(self) -> str:
        return self.store.uri(self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    def __truediv__(self, name: str, /) -> StoreFolder:
        # A name that ends with # and a number is a file under way, for deltalake's access to disks.
        return StoreFolder(self.store, f"{self.path}/{name.replace('#', '@')}")

    def iterdir(self) -> Iterator[StoreFolder]:
        """Yields what is in the folder; nothing if there is none."""
        return (self / name for name in self.store.names(self.path))

    def read_bytes(self) -> bytes:
        """Returns the contents of the file.

        Raises:
            FileNotFoundError: there is none.
        """
        return self.store.read(self.path)

    def write_bytes(self, body: bytes) -> None:
        """Writes the file as a whole, in the place of one that is there."""
        self.store.write(self.path, body)

    def unlink(self, missing_ok: bool = False) -> None:
        """Removes the file.

        Raises:
            FileNotFoundError: there is none, and that is not all right.
        """
        try:
            self.store.remove(self.path)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def make_once(self, body: bytes) -> bool:
        """Makes an empty Delta table whose description is a text; returns whether this call made it.

        The first entry of a table's log is written unless it is there, on every store: deltalake sees to that. Of
        two that make it at once one may come second instead of failing, so the first entry tells whose it is.
        """
        from deltalake import DeltaTable, Field, Schema
        from deltalake.exceptions import DeltaError
        from deltalake.schema import PrimitiveType

        name = uuid.uuid4().hex
        schema = Schema([Field("nothing", PrimitiveType("string"))])
        try:
            DeltaTable.create(self.store.uri(self.path), schema, mode="error", name=name, description=body.decode())
        except DeltaError:
            if not self._made():
                raise
        return bool(self._made()["name"] == name)

    def read_once(self) -> bytes:
        """Returns what `make_once` has written.

        Raises:
            FileNotFoundError: it has not.
        """
        return str(self._made()["description"]).encode()

    def remove_once(self) -> None:
        """Removes what `make_once` has written."""
        if self.store.names(self.path):
            self.store.remove_folder(self.path)

    def _made(self) -> dict[str, Any]:
        lines = lines_of(self.store.read(f"{self.path}/{_FIRST}").decode())
        found: dict[str, Any] = next(json.loads(line)["metaData"] for line in lines if '"metaData"' in line[:12])
        return found
