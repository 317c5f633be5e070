// rondo/placement.h — where ops and tensors of a program are, and what is copied in between.
//
//   rondo_builder_begin_place(builder, "cpu");           // a scope
//   rondo_builder_add_embedding(builder, "ids", "table", "rows");
//   rondo_builder_end_place(builder);
//
//   options.place = (const char *[]){"Gather*=cpu"};     // for one executor
//
// What comes later in this list wins. A place is "cpu", "gpu" (the executor's), "gpu:1" (that GPU,
// beside the executor's or the same), or "all": wherever the executor likes. An executor on the
// host runs all on the processor, and refuses ops that are placed on a GPU; one on a GPU refuses
// ops on one that is not there, and those on a GPU that has no kernel for them.
//
// By default ops run on the executor's device if it has a kernel for them. On the processor stay by
// themselves: shape arithmetic (small whole numbers that only ops of the processor read) and what
// feeds it; look-ups in a table that does not fit into the device's memory, or into
// memory_limit_bytes; ops that the device has no kernel for; strings and sequences.
//
// Ops of the processor in a program of a GPU do not stop it. Their tensors are in pinned memory,
// copies go in stream order, each tensor crosses at most once in a run and direction, and ops and
// copies are nodes of the graph like all else. Constants that only the processor reads are read
// where the program has them. Only ops whose result shape depends on data, and control flow that no
// graph can hold, let the run wait; for one that the GPU runs it waits for 8 bytes.
//
// Ops on another GPU than the executor's have kernels, weights and memory there, and a graph for
// each segment; events order the two streams, so neither the processor nor the other GPU waits for
// more than it needs. A tensor goes from GPU to GPU once in a run and direction: straight where the
// driver has a way (rondo_device_copies_directly), otherwise through pinned memory. Only what is
// placed there runs there, as it stands in the model: it is not fused. Random numbers and control
// flow stay on the executor's GPU. memory_limit_bytes bounds each GPU by itself. Results are
// fetched from the processor's side, so they cross as well. Such runs cannot be recorded
// (rondo_executor_record), take no device tensors where they are, and have no branches.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_PLACEMENT_H
#define RONDO_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"

RONDO_EXTERN_C_BEGIN

typedef int32_t rondo_placement_kind;
enum {
    RONDO_PLACEMENT_OP = 0,        // of the plan, after fusing
    RONDO_PLACEMENT_TRANSFER = 1,  // a copy of a tensor, to `place`
    RONDO_PLACEMENT_TENSOR = 2,
};

// Where an op, a copy or a tensor is, and why. Strings belong to the executor, until its next call.
typedef struct rondo_placement {  // ABI: fixed
    rondo_placement_kind kind;
    const char *type;    // of the op, or the element type of the tensor
    const char *name;    // of the node, or of the tensor
    const char *place;   // "cpu", "gpu" (the executor's) or "gpu:1"
    const char *reason;  // for people
    uint64_t bytes;      // of a tensor, or of what is copied; 0 where its shape depends on data
} rondo_placement;

// Lists ops and copies in the order in which they run, then tensors: those of the main program, as
// a run with these feeds has them. It compiles, but does not run.
//
// feeds      as of rondo_executor_describe_feeds; NULL and 0 for the declared shapes.
// capacity   of out_placements, which may be NULL for 0; *out_count is how many there are.
//
// Errors:    as rondo_executor_run.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_list_placements(
    rondo_executor *executor, const rondo_binding *feeds, size_t feed_count, size_t capacity,
    rondo_placement *out_placements, size_t *out_count);

// What one direction copied.
typedef struct rondo_transfer_count {  // ABI: fixed
    uint64_t count;
    uint64_t bytes;
} rondo_transfer_count;

// Copies of tensors that ops on one device make and ops on another one read; all 0 on the host.
// Inputs in host memory and what is fetched are not among them: run_times has those.
typedef struct rondo_transfer_stats {
    size_t struct_size;  // sizeof(rondo_transfer_stats)
    uint64_t run_count;
    rondo_transfer_count to_device;  // of all runs so far
    rondo_transfer_count to_host;
    // Of these, copies that a run waited for before its end: for an op whose result shape depends
    // on data (on the GPU: for its count), or for control flow on the processor.
    rondo_transfer_count synchronous_to_device;
    rondo_transfer_count synchronous_to_host;
    // From one GPU to another directly. A copy through pinned memory counts as two of the above.
    rondo_transfer_count between_devices;
    rondo_transfer_count synchronous_between_devices;
    rondo_transfer_count weights;  // brought to the GPU for an op (weight_limit_bytes)
} rondo_transfer_stats;

// What the executor's runs have copied.
//
// Errors:    STATE (nothing has run).
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_get_transfers(const rondo_executor *executor,
                                                                   rondo_transfer_stats *out_stats);

RONDO_EXTERN_C_END

#endif  // RONDO_PLACEMENT_H
