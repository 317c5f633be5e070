// pool/guard.h — the stale-memory guard of checked graphs.
//
// While a checked graph is captured, every address that the recorded work is seen to use is looked
// up among the areas of rondo_memory_allocate and the blocks of pools, and remembered with the
// number of that allocation. Before each replay all of them must still be there: memory that was
// freed, also if it was given out again at the same address, makes the replay fail by name.
//
// Seen: destinations and sources of copies and fills, also those of the program's own driver calls;
// eight-byte words in the arguments of rondo_stream_launch and rondo_stream_call_host that are
// addresses in such memory. Not seen: arguments of the program's own launches, addresses that lie
// in memory themselves, memory from elsewhere. The graph's own arena needs no guard.
#ifndef RONDO_POOL_GUARD_H
#define RONDO_POOL_GUARD_H

#include "backend/capture.h"

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

#endif  // RONDO_POOL_GUARD_H
