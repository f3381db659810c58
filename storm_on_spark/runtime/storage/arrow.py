"""Object stores that Arrow's file systems reach: S3, GCS, Azure.

An object is sent whole, so readers see all of it or nothing. None of these classes can create an object only if it is
absent; the rule of names in `interface` does not need that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from storm_on_spark.runtime.storage.interface import Storage, StoredObject, checked

if TYPE_CHECKING:
    from pyarrow import fs


class ArrowStorage(Storage):
    """Keeps objects below a folder of an Arrow file system.

    Args:
        system: the file system.
        folder: bucket and beginning of all names, without the last `/`.
        url: for messages.
    """

    def __init__(self, system: fs.FileSystem, folder: str, url: str) -> None:
        self._system = system
        self._folder = folder
        self.url = url

    def create(self, name: str, data: bytes) -> None:
        """Makes an object without a check whether the name exists."""
        self.put(name, data)

    def put(self, name: str, data: bytes) -> None:
        """Makes or replaces an object."""
        # If a part can't be sent, closing fails as well, and there is no object.
        with self._system.open_output_stream(self._path(name), compression=None) as stream:
            stream.write(data)

    def read(self, name: str, start: int = 0, length: int | None = None) -> bytes:
        """Returns bytes of an object."""
        with self._system.open_input_file(self._path(name)) as file:
            end = file.size()
            wanted = end - start if length is None else min(length, end - start)
            return file.read_at(wanted, start) if wanted > 0 else b""

    def list_folder(self, folder: str = "", *, deep: bool = False) -> list[StoredObject]:
        """Returns the objects of a folder by name."""
        from pyarrow import fs

        top = self._path(folder) if folder else self._folder
        cut = len(self._folder) + 1
        selector = fs.FileSelector(top, allow_not_found=True, recursive=deep)
        return sorted(
            StoredObject(info.path[cut:], info.size)
            for info in self._system.get_file_info(selector)
            # Zero bytes under a folder's name: some tools mark folders like that.
            if info.type == fs.FileType.File and not info.base_name.startswith(".") and info.base_name
        )

    def delete(self, name: str) -> None:
        """Deletes an object."""
        try:
            self._system.delete_file(self._path(name))
        except FileNotFoundError:
            return

    def delete_folder(self, folder: str) -> None:
        """Deletes all objects of a folder; on S3 a thousand by a request."""
        self._system.delete_dir_contents(self._path(folder), missing_dir_ok=True)

    def _path(self, name: str) -> str:
        return f"{self._folder}/{checked(name)}"
