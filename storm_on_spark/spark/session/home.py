"""A folder to be `SPARK_HOME`: pyspark's own, without what makes Python processes start slowly."""

from __future__ import annotations

from pathlib import Path


def linked_home(folder: Path, submit: str | None = None) -> Path:
    """Makes a folder of links to pyspark's, without its `python`, and returns it.

    Spark puts the archive of pyspark's modules that lies there before everything else on the path of every Python
    process. It holds no compiled modules: each process would compile them again, 0.75 s of processor time, and a dozen
    of them are started before the first micro-batch. The installed package is the same code, compiled. Executors of a
    `local-cluster` write into the folder too.

    Args:
        folder: where the folder `spark` is made.
        submit: a script in the place of `spark-submit`.
    """
    import pyspark

    home = folder / "spark"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name in ("bin", "sbin", "jars", "conf", "examples", "licenses"):
            (home / entry.name).symlink_to(entry)
    if submit is not None:
        links = (home / "bin").resolve()
        (home / "bin").unlink()
        (home / "bin").mkdir()
        for entry in links.iterdir():
            (home / "bin" / entry.name).symlink_to(entry)
        (home / "bin" / "spark-submit").unlink()
        (home / "bin" / "spark-submit").write_text(submit)
        (home / "bin" / "spark-submit").chmod(0o700)
    return home
