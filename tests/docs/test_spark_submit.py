"""The manifest for Kubernetes and the job for Databricks: not run, but what they say fits what an artifact does."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from storm_on_spark import __version__
from storm_on_spark.artifact import main
from storm_on_spark.artifact.submitting import command

FOLDER = Path(__file__).parents[2] / "docs" / "spark-submit"


def test_the_manifest_starts_what_the_readme_says_and_its_names_fit() -> None:
    documents = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
    kinds: dict[str, Any] = {document["kind"]: document for document in documents}
    pod = kinds["Deployment"]["spec"]["template"]
    (driver,) = pod["spec"]["containers"]
    words = driver["command"]
    confs = {words[at + 1] for at, word in enumerate(words) if word == "--conf"}
    plain = [word for at, word in enumerate(words) if word != "--conf" and words[at - 1] != "--conf"]
    wanted = command("k8s://https://kubernetes.default.svc", {}, checkpoint="/data/checkpoint")
    assert ["spark-submit", *plain[1:]] == shlex.split(wanted)
    settings = dict(conf.split("=", 1) for conf in confs)
    service = kinds["Service"]
    assert settings["spark.driver.host"] == service["metadata"]["name"]
    ports = {port["port"] for port in service["spec"]["ports"]}
    assert {int(settings["spark.driver.port"]), int(settings["spark.driver.blockManager.port"])} == ports
    assert service["spec"]["selector"] == pod["metadata"]["labels"]
    assert kinds["Deployment"]["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert pod["spec"]["serviceAccountName"] == kinds["ServiceAccount"]["metadata"]["name"]
    assert kinds["RoleBinding"]["roleRef"]["name"] == kinds["Role"]["metadata"]["name"]
    assert kinds["RoleBinding"]["subjects"][0]["name"] == kinds["ServiceAccount"]["metadata"]["name"]
    claim = kinds["PersistentVolumeClaim"]["metadata"]["name"]
    volume = "spark.kubernetes.executor.volumes.persistentVolumeClaim.data"
    assert settings[f"{volume}.options.claimName"] == claim
    assert pod["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == claim
    assert driver["volumeMounts"][0]["mountPath"] == settings[f"{volume}.mount.path"] == "/data"
    assert settings["spark.kubernetes.container.image"] == driver["image"]


def test_every_document_of_the_manifest_has_the_shape_that_kubernetes_demands() -> None:
    schemas = json.loads((Path(__file__).parent / "kubernetes-1.37.json").read_text())
    documents = list(yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text()))
    assert len(documents) == 6
    for document in documents:
        schema = {**schemas["kinds"][document["kind"]], "definitions": schemas["definitions"]}
        jsonschema.Draft7Validator(schema).validate(document)
    # It would notice: a name that is misspelt, and a number that is text.
    pod = documents[-1]["spec"]["template"]["spec"]
    for broken in ({"servicAccountName": "spark"}, {"terminationGracePeriodSeconds": "thirty"}):
        wrong = {**documents[-1], "spec": {**documents[-1]["spec"], "template": {"spec": {**pod, **broken}}}}
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.Draft7Validator(schema).validate(wrong)


def test_the_job_with_a_notebook_names_one_that_databricks_opens_as_source() -> None:
    (task,) = json.loads((FOLDER / "databricks-notebook-job.json").read_text())["tasks"]
    source = FOLDER.parents[1] / "notebooks" / (task["notebook_task"]["notebook_path"].rsplit("/", 1)[1] + ".py")
    assert source.read_text().startswith("# Databricks notebook source\n")
    other = json.loads((FOLDER / "databricks-job.json").read_text())["tasks"][0]["new_cluster"]
    assert task["new_cluster"] == {key: value for key, value in other.items() if key != "spark_env_vars"}
    (library,) = task["libraries"]
    assert library["whl"].endswith(f"/storm_on_spark-{__version__}-py3-none-any.whl")


def test_the_job_for_databricks_names_the_folder_of_its_program() -> None:
    (task,) = json.loads((FOLDER / "databricks-job.json").read_text())["tasks"]
    cluster = task["new_cluster"]
    (variable,) = cluster["spark_env_vars"]
    folder = cluster["spark_env_vars"][variable]
    assert task["spark_python_task"]["python_file"] == f"{folder}/main.py"
    assert task["spark_python_task"]["parameters"][0] == "--checkpoint"
    assert f'os.environ.get("{variable}")' in Path(str(main.__file__)).read_text()
    assert cluster["data_security_mode"] == "SINGLE_USER"
    assert cluster["spark_conf"] == {"spark.driver.extraJavaOptions": "-Xss8m"}
