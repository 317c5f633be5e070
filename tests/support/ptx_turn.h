// support/ptx_turn.h — whether a kernel may start while those before it still run.
//
// Our kernels are launched with programmatic edges (RONDO_LAUNCH_OVERLAP), so each has to wait for
// all before it (griddepcontrol.wait) on every way through its code, before it touches memory that
// others write or read. This reads the PTX and follows every way from the entry to the wait: on
// none of them is there a return, a call, a branch by table, or an access to global memory. The
// order of PTX is what counts: the assembler moves no access across the wait.
//
// Some kernels read or copy their weights earlier, which nothing ever writes. For them the address
// of each such access is followed back to the kernel's parameters, and may come from pointers to
// them alone, or must be that of the one tensor map that tells of the weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What an entry may read before its turn: the parameter words `pointer_count` are addresses, and
// what those with a bit in `constants` lead to is never written. `map_bytes` is where in the
// parameters the map of such a tensor lies; 0: there is none.
typedef struct ptx_constant {
    const char *entry;
    size_t pointer_count;
    uint64_t constants;
    size_t map_bytes;
} ptx_constant;

// Checks each entry of the PTX. `constants` ends with a row without an entry. False: `why` says
// what is wrong, in which entry.
bool ptx_takes_turns(const char *ptx, const ptx_constant *constants, char *why, size_t why_bytes);
