"""Credentials of a topology: secrets that its components are given, and given again whenever they change.

They are pushed to a topology that runs (`storm-spark upload-credentials`), and are not part of its configuration.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any


class Credentials(Mapping[str, str]):
    """What a component is given: it can't be changed, shows no values, and is not saved with a component's attributes.

    Args:
        values: name -> secret.

    Example:
        >>> credentials = Credentials({"token": "s3cret"})
        >>> credentials["token"], credentials
        ('s3cret', <1 credential>)
        >>> import pickle
        >>> len(pickle.loads(pickle.dumps(credentials)))
        0
    """

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, str] | None = None) -> None:
        self._values = dict(values or {})

    def __getitem__(self, name: str) -> str:
        try:
            return self._values[name]
        except KeyError:
            raise KeyError(f"there is no credential {name!r:.200}; there are {len(self)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<{len(self)} credential{'' if len(self) == 1 else 's'}>"

    def __copy__(self) -> Credentials:
        return self

    def __deepcopy__(self, memo: Any) -> Credentials:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        # The code that restores a component gives it the present ones.
        return Credentials, ()


class ICredentialsListener(ABC):
    """A spout or bolt that is given the topology's credentials, beside its other base class.

    Example:
        >>> from storm_on_spark.api import BaseRichBolt
        >>> class Upload(BaseRichBolt, ICredentialsListener):
        ...     def set_credentials(self, credentials):
        ...         self.credentials = credentials
        ...     def execute(self, tup):
        ...         print("with a token of", len(self.credentials["token"]), "characters")
    """

    @abstractmethod
    def set_credentials(self, credentials: Mapping[str, str]) -> None:
        """Called before `prepare` or `open`, and between tuples whenever the credentials have changed.

        It runs on the thread that calls the component's other methods. It may be called again with the same
        credentials, after the component's saved attributes were restored. An exception ends the topology's run as one
        in `prepare` does.

        Args:
            credentials: name -> secret; empty if none were pushed. Keep this mapping or a client made from it. A text
                or a dict of an attribute that holds a credential is not saved with the other attributes, but what
                is nested deeper is: leave that out in `__getstate__`.
        """
