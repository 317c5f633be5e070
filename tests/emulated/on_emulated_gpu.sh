# Runs a command on the emulated GPU: sh on_emulated_gpu.sh FOLDER COMMAND...; FOLDER has its
# libraries. Skipped where there is no C++ compiler.
# SPDX-License-Identifier: Apache-2.0
folder=$1
shift
compiler=${RONDO_EMULATED_CXX:-g++}
if ! command -v "$compiler" >/dev/null; then
    echo "skipped: the emulated GPU compiles its kernels with $compiler, which is not here"
    exit 77
fi
LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
RONDO_TUNE=${RONDO_TUNE:-off}  # times say nothing here, and contests take long
RONDO_REQUIRE=${RONDO_REQUIRE:-cuda}  # there is a GPU: no test leaves it out
export LD_LIBRARY_PATH RONDO_TUNE RONDO_REQUIRE
exec "$@"
