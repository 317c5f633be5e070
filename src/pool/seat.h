// pool/seat.h — taking and giving blocks while a capture is open; between arena.c and seat.c.
#ifndef RONDO_POOL_SEAT_H
#define RONDO_POOL_SEAT_H

#include "pool/arena.h"

// The seat of the capture's graph in its arena for the pool, made when there is none.
//
// Errors:    NO_MEMORY.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__arena_get_seat(rondo_pool *pool, rondo__capture *capture,
                                                  rondo__seat **out_seat);

// Whether a graph with memory in the capture's own arena was recorded into it.
bool rondo__arena_has_guest(rondo__capture *capture);

// Counters.  Threads: safe.
void rondo__arena_count_live(rondo_arena *arena, uint64_t bytes);
void rondo__arena_count_freed(rondo_arena *arena, uint64_t bytes);
void rondo__arena_count_region(rondo_arena *arena, uint64_t bytes);

// The rest with the pool's lock held.

// Makes the record of a lease of an arena a spare one.
void rondo__seat_drop_lease(rondo_pool *pool, rondo__lease *lease);

// Work that the seat's open capture records uses the block: if another graph produces that, this
// one takes it in.
void rondo__seat_note_use(rondo__seat *seat, const rondo__lease *lease);

// The capture has ended: its free blocks are open to everybody, its live ones are what the graph
// leaves behind, or freed when it is undone. Also with the arena's lock held.
void rondo__seat_close(rondo__seat *seat, bool is_undone);

// Live blocks outlive the seat.
void rondo__seat_forget_leases(rondo__seat *seat);

#endif  // RONDO_POOL_SEAT_H
