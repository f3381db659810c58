#!/bin/sh
# Makes the virtual environment if there is none, and installs a lock and this package in editable form into it.
# Usage: tools/setup.sh VENV LOCK
set -eu

venv=$1
lock=$2

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

# Also the stamps of longer names: who installs the package anew checks the development tools again.
rm -f "$venv/installed-${lock%.lock}"-*

# Standard output belongs to the command that comes after the set-up.
exec >&2
echo "Installing the packages of $lock into $venv. Spark is the largest of them, and takes minutes the first time."
# Hashes are checked by pip because the lock has them. The project itself comes last, without dependencies
# and without a build environment, so nothing that the lock doesn't name is put into the environment.
"$venv/bin/python" -m pip install --disable-pip-version-check -r "$lock" &&
    "$venv/bin/python" -m pip install --disable-pip-version-check --no-deps --no-build-isolation -e . ||
    fail "The packages of $lock could not be installed: pip says above why. The same command goes on from here."
