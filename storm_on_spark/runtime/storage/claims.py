"""Ownership of a folder by growing, unique numbers, on a store that can only put, list and delete.

A claim is an object `NUMBER-TOKEN`; only the claimer has the token, so no other process makes that name. To claim is to
put a number above all that are there, and then to look: if another claim has the same number or a greater one, the
number may not be ours alone, and a greater one is tried. Of two claimers with one number, the one that put later sees
the other when it looks; so they can't both keep it. (The doorway of Lamport's bakery, with a store that shows at once
what was put.)

The greatest claim is never deleted while its owner runs, so numbers grow. An owner that sees a greater claim than its
own has been replaced.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from storm_on_spark.runtime.storage.interface import Storage, StoredObject

OWNERS = "owners"
"""Folder of the claims to a checkpoint in a store, in the topology's own."""
VERSION = 1
_NAME = re.compile(r"(\d{10})-([0-9a-f]{8,64})", re.ASCII)
_MAX_BYTES = 1 << 14
_ATTEMPTS = 100


@dataclass(frozen=True, order=True)
class Claim:
    """A claim's name.

    Example:
        >>> str(Claim(7, "0123456789abcdef"))
        '0000000007-0123456789abcdef'
        >>> Claim.parse("0000000007-0123456789abcdef") == Claim(7, "0123456789abcdef"), Claim.parse("7.json")
        (True, None)
    """

    number: int
    token: str

    def __str__(self) -> str:
        return f"{self.number:010d}-{self.token}"

    @classmethod
    def parse(cls, name: str) -> Claim | None:
        """Returns the claim that `name` names; None if it is no claim's."""
        found = _NAME.fullmatch(name)
        return None if found is None else cls(int(found[1]), found[2])


def claims_in(objects: Iterable[StoredObject]) -> list[Claim]:
    """Returns the claims of a listing, ascending."""
    return sorted(claim for one in objects if (claim := Claim.parse(one.name)) is not None)


def make_claim(
    storage: Storage,
    token: str,
    about: Mapping[str, object],
    sleep: Callable[[float], None] = time.sleep,
    known: Iterable[int] = (),
) -> tuple[Claim, list[Claim]]:
    """Returns a claim with a number that no other process gets, and the claims that were there before.

    Args:
        storage: the folder of the claims.
        token: hexadecimal digits that no other claimer has.
        about: what others may want to know of the claimer; terms of JSON.
        sleep: waits for seconds, where claimers get in each other's way.
        known: numbers that are in use although no claim shows it.

    Raises:
        OSError: the folder can't be written or listed.
    """
    before = claims_in(storage.list_folder())
    number = max([claim.number for claim in before] + list(known), default=0) + 1
    for attempt in range(_ATTEMPTS):
        mine = Claim(number, token)
        write_claim(storage, mine, about)
        seen = claims_in(storage.list_folder())
        others = [claim for claim in seen if claim.token != token]
        if mine in seen and all(claim.number < number for claim in others):
            for claim in seen:
                if claim.token == token and claim != mine:
                    storage.delete(str(claim))
            return mine, others
        number = max(claim.number for claim in [mine, *others]) + 1
        sleep(random.uniform(0, 0.01 * min(attempt + 1, 20)))
    raise OSError(
        f"{storage.url}: no number could be claimed in {_ATTEMPTS} attempts; other processes keep claiming them"
    )


def write_claim(storage: Storage, claim: Claim, about: Mapping[str, object]) -> None:
    """Writes a claimer's description of itself as JSON; only the claimer may."""
    storage.put(str(claim), json.dumps({"version": VERSION, **about}).encode())


def read_claim(storage: Storage, claim: Claim) -> dict[str, Any] | None:
    """Returns a claimer's description of itself; None if the claim is gone, or of another format."""
    try:
        about = json.loads(storage.read(str(claim), 0, _MAX_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    if not isinstance(about, dict) or about.pop("version", None) != VERSION:
        return None
    return about


def successor(storage: Storage, mine: Claim) -> Claim | None:
    """Returns the greatest claim if it is above `mine`, else None.

    Raises:
        OSError: the claims can't be listed.
    """
    seen = claims_in(storage.list_folder())
    return seen[-1] if seen and seen[-1].number > mine.number else None
