#!/bin/sh
# Prints a Python that is new enough; says in one sentence what is missing otherwise. PYTHON=... chooses one.
set -eu

for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python3.10 python}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        command -v "$candidate"
        exit 0
    fi
done

if found=$("${PYTHON:-python3}" -c 'import platform; print(platform.python_version())' 2>/dev/null); then
    found="only Python $found"
else
    found="no ${PYTHON:-python3}"
fi
echo "Python 3.10 or newer is needed and there is $found here: install it (Debian, Ubuntu:" \
    "apt-get install python3 python3-venv; macOS: brew install python) or name one with make PYTHON=/path/to/python." >&2
exit 1
