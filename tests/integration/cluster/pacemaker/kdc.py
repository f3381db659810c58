"""A real Kerberos: Debian's krb5-kdc, with a realm, principals and key tables of its own, on a port of this machine."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fetching import FETCH_SECS, need
from storm_jars import ROOT

from storm_on_spark.runtime.processes.parent import die_with_parent
from storm_on_spark.runtime.processes.server import free_port

REALM = "STORM.TEST"
_CONF = """\
[libdefaults]
 default_realm = {realm}
 dns_lookup_kdc = false
 dns_lookup_realm = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
 permitted_enctypes = aes256-cts-hmac-sha1-96
[realms]
 {realm} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {realm}
[kdcdefaults]
 kdc_listen = 127.0.0.1:{port}
 kdc_tcp_listen = 127.0.0.1:{port}
[dbmodules]
 {realm} = {{
  db_library = db2
  database_name = {folder}/principal
 }}
[logging]
 kdc = FILE:{folder}/kdc.log
"""
_KDC_CONF = """\
[realms]
 {realm} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  supported_enctypes = aes256-cts-hmac-sha1-96:normal
 }}
"""


def need_gssapi() -> None:
    """Has Python find `gssapi`: as it is installed, else as Debian has it, else built by pip."""
    if importlib.util.find_spec("gssapi") is not None:
        return
    folder = ROOT / "build" / f"gssapi-{sys.version_info.major}.{sys.version_info.minor}"
    if not folder.is_dir():
        folder.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            found = _of_debian(Path(scratch)) or _of_pip(Path(scratch))
            found.rename(folder)
    sys.path.append(str(folder))
    importlib.invalidate_caches()


def _of_debian(scratch: Path) -> Path | None:
    # Debian's is built for one version of Python; it takes a second where pip's takes minutes of a compiler.
    with contextlib.suppress(OSError):
        packages = ["apt-get", "download", "-qq", "python3-gssapi", "python3-decorator"]
        if subprocess.run(packages, cwd=scratch, capture_output=True, timeout=FETCH_SECS, check=False).returncode:
            return None
        for package in scratch.glob("*.deb"):
            subprocess.run(["dpkg", "-x", str(package), str(scratch / "out")], check=True, timeout=60)
        found = scratch / "out/usr/lib/python3/dist-packages"
        if any(found.glob(f"gssapi/**/*.cpython-{sys.version_info.major}{sys.version_info.minor}-*.so")):
            return found
    return None


def _of_pip(scratch: Path) -> Path:
    need("krb5-config", "libkrb5-dev")
    command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(scratch / "pip"), "gssapi>=1.8"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECS, check=False)
    if done.returncode:
        pytest.fail(f"gssapi could not be built: {done.stderr[-2000:]}")
    return scratch / "pip"


class Kdc:
    """A running one."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder = folder
        self.conf = folder / "krb5.conf"
        self._environment = environment

    def keytab(self, principal: str) -> Path:
        """Makes a principal with a random key, and returns the key table that has it."""
        file = self.folder / (principal.replace("/", "_") + ".keytab")
        for query in (f"addprinc -randkey {principal}", f"ktadd -k {file} {principal}"):
            self.run(["kadmin.local", "-r", REALM, "-q", query])
        file.chmod(0o600)
        return file

    def run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


@contextlib.contextmanager
def kdc(folder: Path) -> Iterator[Kdc]:
    """Runs one; the environment of this process is changed to use it."""
    if os.geteuid() != 0:
        pytest.skip("a KDC's programs are in /usr/sbin and for root only here")
    os.environ["PATH"] += f"{os.pathsep}/usr/sbin"
    program = need("krb5kdc", "krb5-kdc")
    need("kadmin.local", "krb5-admin-server")
    need_gssapi()
    port = free_port()
    (folder / "krb5.conf").write_text(_CONF.format(realm=REALM, port=port, folder=folder))
    (folder / "kdc.conf").write_text(_KDC_CONF.format(realm=REALM, folder=folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KRB5_CONFIG", str(folder / "krb5.conf"))
        patch.setenv("KRB5_KDC_PROFILE", str(folder / "kdc.conf"))
        patch.setenv("KRB5CCNAME", f"FILE:{folder / 'tickets'}")
        patch.setenv("KRB5RCACHENAME", f"file2:{folder / 'replays'}")
        running = Kdc(folder, dict(os.environ))
        running.run(["kdb5_util", "create", "-s", "-r", REALM, "-P", "master"])
        process = subprocess.Popen(die_with_parent([program, "-n", "-r", REALM]), stdin=subprocess.DEVNULL)
        try:
            yield running
        finally:
            process.terminate()
            process.wait()
