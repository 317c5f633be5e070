// pool/guard.h — the stale-memory guard of checked graphs.
//
// While a checked graph is captured, every address that the recorded work is seen to use is looked
// up among the areas of rondo_memory_allocate, the blocks of pools and what the driver has given to
// anybody else, and remembered with the number of that allocation. Before each replay all of them
// must still be there: memory that was freed, also if it was given out again at the same address,
// makes the replay fail by name.
//
// Seen: destinations and sources of copies and fills, and eight-byte words in the arguments of
// kernels, also of the program's own launches (CUDA 12.4), and of host functions called through
// Rondo; in the graph, its bodies and its child graphs. Not seen: addresses that lie in memory
// themselves, memory from malloc, blocks within an allocation that others divide. The graph's own
// arena needs no guard.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "capture/capture.h"

// Makes a capture that has just begun a checked one.
//
// Errors:    NO_MEMORY.
// Threads:   the one that records.
RONDO_MUST_USE rondo_status rondo__guard_join(rondo__capture *capture);

// A node found in the ended capture uses the address. Nothing happens without a guard in the list.
//
// Errors:    NO_MEMORY.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__guard_note_node(rondo__participant *list, const void *address,
                                                   const char *what);
// A patch is to use the address: refused where the graph noted memory there that was freed, and no
// other is there now.
//
// call       the public call, for errors.
//
// Errors:    STATE (that), DRIVER.
// Threads:   one thread per graph.
RONDO_MUST_USE rondo_status rondo__guard_refuse_gone(rondo__participant *list, const void *address,
                                                     const char *call);
// A patch changed what the graph uses, and all of it is noted anew between these two. What was
// noted before goes if `has_all`, but for memory that was freed and that a node uses which was
// named before that: the patch of another node does not make it right. Otherwise what was noted now
// goes.
//
// call       counts the calls that patch the graph, from 1.
//
// Errors:    DRIVER; then nothing has begun.
RONDO_MUST_USE rondo_status rondo__guard_begin_anew(rondo__participant *list, uint64_t call);
void rondo__guard_end_anew(rondo__participant *list, bool has_all);
// What is noted next is of a node whose work the program named in that call; 0: in the recording.
void rondo__guard_begin_node(rondo__participant *list, uint64_t named_at);

// The same for each word of a kernel's arguments.
RONDO_MUST_USE rondo_status rondo__guard_note_arguments(rondo__participant *list, const void *bytes,
                                                        size_t byte_count, const char *what);
