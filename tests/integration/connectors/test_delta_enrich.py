"""The job that enriches clicks through Spark, beside the batch job that joins the same."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from chispa import assert_df_equality
from deltalake import DeltaTable

sys.path.insert(0, str(Path(__file__).parents[3] / "jobs"))

import delta_enrich  # needs the path above

from storm_on_spark import Config, ConfigError
from storm_on_spark.testing import run_topology


def test_the_stream_and_the_batch_job_join_the_same(
    nothing_left_behind: None, spark_session: Any, tmp_path: Path
) -> None:
    clicks = tmp_path / "clicks.jsonl"
    lines = [json.dumps({"user": number % 6, "page": f"/{number}"}) for number in range(300)]
    clicks.write_text("\n".join(lines) + "\n")
    conf = {
        delta_enrich.FOLDER: str(tmp_path),
        delta_enrich.CLICKS: str(clicks),
        Config.TOPOLOGY_CHECKPOINT_DIR: str(tmp_path / "checkpoint"),
    }
    captured = run_topology(delta_enrich.build(conf), conf=conf, spark=spark_session, capture=())
    assert (captured.info.acked, captured.info.failed) == (300, 0)
    users, written = (
        spark_session.createDataFrame(DeltaTable(tmp_path / name).to_pyarrow_table()) for name in ("users", "clicks")
    )
    expected = delta_enrich.by_plain_spark(spark_session, str(clicks), users)
    assert_df_equality(written, expected, ignore_row_order=True)
    assert written.where("country IS NULL").count() == 150, "users 3, 4 and 5 have no country"


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({delta_enrich.FOLDER: ""}, "must be the path of a folder"),
        ({delta_enrich.REFRESH_SECS: "often"}, "seconds above 0"),
        ({delta_enrich.CLICKS: "/nowhere"}, r"delta\.enrich\.clicks names '/nowhere', which does not exist"),
    ],
)
def test_settings_that_make_no_sense_are_refused(conf: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=message):
        delta_enrich.build({delta_enrich.FOLDER: str(tmp_path), **conf})
