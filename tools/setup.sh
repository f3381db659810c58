#!/bin/sh
# Makes the virtual environment with the locked dependencies and this package in editable form.
# Usage: tools/setup.sh VENV STAMP
set -eu

venv=$1
stamp=$2
log=build/setup.log

fail() {
    echo "$1" >&2
    exit 1
}

if ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    python=$(sh tools/find-python.sh)
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python has no venv module: install it (Debian, Ubuntu: apt-get install python3-venv)."
    "$python" -m venv --clear "$venv"
fi

mkdir -p build
echo "Installing the locked dependencies into $venv: about a minute the first time." >&2
# Hashes are checked by pip because the lock has them. The project itself comes last, without dependencies
# and without a build environment, so nothing that the lock doesn't name is put into the environment.
if ! {
    "$venv/bin/python" -m pip install --disable-pip-version-check -r requirements-dev.lock &&
        "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e .
} >"$log" 2>&1; then
    tail -n 5 "$log" >&2
    fail "The dependencies could not be installed; $log has all that pip said."
fi

# Optional, so never a reason to fail: what its absence costs is said by the command itself. Its package imports the
# module, so with -m Python would warn that it is there already.
"$venv/bin/python" -c 'from storm_on_spark.spark.session.jars import main; main()' >&2 || true

rm -f "$venv"/installed-*
touch "$stamp"
