"""The contract of an admin's REST interface."""

from __future__ import annotations

import msgspec
import pytest

from storm_on_spark.xd.admin.rest import schemas
from storm_on_spark.xd.admin.rest.resources import RESOURCES


def test_a_resource_has_one_name_and_one_path() -> None:
    assert len({each.name for each in RESOURCES}) == len(RESOURCES)
    assert len({(each.method, each.path) for each in RESOURCES}) == len(RESOURCES)


def test_every_body_has_a_schema() -> None:
    types = [kind for each in RESOURCES for kind in (each.gives, each.takes) if kind is not None]
    _, found = msgspec.json.schema_components(types)
    assert {"CreateDefinition", "Deploy", "ContainerView", "Validation"} <= found.keys()


@pytest.mark.parametrize(
    "body",
    [
        {"name": "a b", "definition": "time | log"},
        {"name": "a\n", "definition": "time | log"},
        {"name": "../a", "definition": "time | log"},
        {"name": "a" * 256, "definition": "time | log"},
        {"name": "a", "definition": ""},
        {"name": "a", "definition": "x" * 65_537},
        {"name": "a", "definition": "time | log", "deploi": True},
        {"name": "a", "definition": "time | log", "deploy": "yes"},
        {"definition": "time | log"},
    ],
)
def test_a_malformed_definition_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(body, schemas.CreateDefinition)


def test_a_deployment_has_so_many_properties_at_most() -> None:
    most = {str(number): "1" for number in range(schemas.MAXIMUM_PROPERTIES)}
    assert msgspec.convert({"properties": most}, schemas.Deploy).properties == most
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"properties": {**most, "more": "1"}}, schemas.Deploy)


def test_names_in_json_are_in_camel_case() -> None:
    page = schemas.page_of((schemas.DefinitionView(name="a", definition="time | log", status="deployed"),), 0, 20)
    assert msgspec.to_builtins(page) == {
        "content": ({"name": "a", "definition": "time | log", "status": "deployed"},),
        "page": {"size": 20, "totalElements": 1, "totalPages": 1, "number": 0},
    }


@pytest.mark.parametrize(("number", "size"), [(-1, 20), (0, 0), (0, schemas.MAXIMUM_PAGE_SIZE + 1)])
def test_a_page_that_cannot_be_is_refused(number: int, size: int) -> None:
    with pytest.raises(ValueError, match="Expected a"):
        schemas.page_of((), number, size)
