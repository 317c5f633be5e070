# Runs a test of the package: sh run.sh BUILD ARGUMENTS..., in this folder, with the first of
# $RONDO_PYTHON, python3 and /usr/bin/python3 that has numpy.
# SPDX-License-Identifier: Apache-2.0
build=$(cd "$1" && pwd) || exit 1
shift
cd "$(dirname "$0")" || exit 1
for python in ${RONDO_PYTHON:-} python3 /usr/bin/python3; do
    if "$python" -c 'import sys, numpy; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        RONDO_LIBRARY=$build/librondo.so.0.1
        RONDO_LOG=${RONDO_LOG:-error}
        PYTHONPATH=$(cd .. && pwd)
        PYTHONDONTWRITEBYTECODE=1
        export RONDO_LIBRARY RONDO_LOG PYTHONPATH PYTHONDONTWRITEBYTECODE
        exec "$python" -X faulthandler "$@"
    fi
done
echo "skipped: no Python of 3.11 or later with numpy here (Debian: python3-numpy)"
exit 77
