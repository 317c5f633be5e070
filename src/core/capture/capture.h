// capture/capture.h — captures in progress, and their participants.
//
// A graph that begins a capture enters it here. A pool, a generator or another room that is handed
// one of its streams finds the capture and takes part: it keeps state for the graph, may record
// nodes of its own before the end, is asked before each replay, and is told when the graph gives
// the state up. So these rooms need to know nothing of graphs.
//
//   capture ── participant (private memory) ── participant (a generator) ── ...
//           └─ body: a conditional node's body that is being recorded, with an id of its own
//
// The streams of a capture are known to the driver alone, because a program may join one without
// Rondo; so a stream is looked up by the capture id that the driver gives. While no capture runs on
// the device that costs one load.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/backend.h"
#include "capture/blame.h"
#include "rondo/pool.h"

typedef struct rondo__capture rondo__capture;
typedef struct rondo__participant rondo__participant;

// The functions of a kind of participant. NULL entries do nothing. Calls of one participant overlap
// only in replays: a graph that was recorded into others is replayed with them, by several threads
// at once. From prepare_replay to note_replay or cancel_replay, on one thread, a participant may
// keep other threads out (random/generator_state.c, pool/order.c).
typedef struct rondo__participant_type {
    const char *name;  // for messages
    // All work is recorded and every stream should be joined to capture->origin; nodes recorded
    // there now are the graph's last. A failure fails the capture.
    rondo_status (*finish)(rondo__participant *participant, rondo__capture *capture);
    // A conditional node is about to be recorded on `parent`; nodes recorded now come before it.
    rondo_status (*enter_scope)(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *parent);
    // A body that was recorded on `body` is complete; nodes recorded now are its last.
    rondo_status (*leave_body)(rondo__participant *participant, rondo__capture *capture,
                               rondo_stream *body);
    // Work recorded on `stream` (NULL: work that was recorded, and is patched now) uses `address`;
    // for captures that want addresses. A failure is the call's.
    rondo_status (*note_address)(rondo__participant *participant, rondo_stream *stream,
                                 const void *address, const char *what);
    // The participant's graph is about to be recorded on `stream`, of another capture, as one node.
    rondo_status (*enter_child)(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream);
    // It was; the node is all that the next one on `stream` depends on.
    rondo_status (*leave_child)(rondo__participant *participant, rondo__capture *capture,
                                rondo_stream *stream);
    // The capture has ended: its streams record no more, `capture` is about to be freed. Where no
    // graph came of it, what the participant did for it is undone.
    void (*close)(rondo__participant *participant, rondo__capture *capture, bool has_succeeded);
    // Before each replay, on the stream of the replay; a failure refuses the replay. On the hot
    // path.
    rondo_status (*prepare_replay)(rondo__participant *participant, rondo_stream *stream);
    // The replay was put on the stream.
    void (*note_replay)(rondo__participant *participant, rondo_stream *stream);
    // The replay did not happen after all: a later participant or the backend refused it.
    void (*cancel_replay)(rondo__participant *participant);
    // The graph is reset or destroyed and its replays are finished, or the capture failed (then
    // nothing of it will ever run). Frees the participant.
    void (*destroy)(rondo__participant *participant);
} rondo__participant_type;

// Embed as the first member.
struct rondo__participant {
    const rondo__participant_type *type;
    const void *key;  // what it stands for, such as the generator; only compared
    rondo__participant *next;
};

// A conditional node's body that is or was being recorded, as a capture of its own inside.
typedef struct rondo__capture_body {
    uint64_t id;              // the body's capture id
    uint64_t parent_id;       // of the capture that holds the conditional node
    rondo__node_handle node;  // the conditional node, in the parent
    uint32_t branch;          // which of the node's bodies
    rondo_stream *parent;     // whose frontier the node is
    rondo_stream *stream;     // that records it; NULL once it has ended; guarded by capture->lock
    uint32_t stream_number;   // of that stream
    uint64_t thread_number;   // who began it
    struct rondo__capture_body *next;
} rondo__capture_body;

// Memory that a capture takes from pools, in the order of the calls.
typedef struct rondo__capture_blocks {
    struct rondo__capture_block {
        uintptr_t begin;
        size_t bytes;
    } * list;  // owned by the call that looks
    size_t count;
    size_t capacity;
    bool is_incomplete;  // there was no memory for one
} rondo__capture_blocks;

struct rondo__capture {
    rondo_device *device;
    rondo_stream *origin;        // NULL: destroyed meanwhile; guarded by device->capture_list_lock
    rondo_stream *kept_streams;  // destroyed by the program; guarded by device->capture_list_lock
    rondo_capture_mode mode;
    uint64_t thread_number;  // who began (base/thread.h)
    size_t label_depth;      // scopes open on the origin then
    const char *label;       // of the graph, for messages; borrowed
    uint64_t id;
    rondo_arena *arena;                          // the graph's private memory; borrowed from it
    rondo__capture_blocks *blocks;               // filled in under lock; NULL: not asked for
    bool snapshots_pageable;                     // the graph wants copies of pageable sources
    bool wants_addresses;                        // see rondo__addresses_want
    bool had_scopes;                             // a scope was begun in it (device/scope_list.h)
    bool is_by_hand;                             // only edges order the nodes of its stream
    bool is_step;                                // rondo_graph_capture_step's, may run again
    _Atomic(rondo__participant *) participants;  // in order of arrival; written under lock
    rondo__capture_body *bodies;                 // open ones, latest first
    rondo__capture_body *closed_bodies;
    rondo__capture *next;  // guarded by device->capture_list_lock
    rondo__blame blame;    // what broke it; guarded by lock
    // The last member: an open clears all before it.
    pthread_mutex_t lock;  // guards the lists; held for look-ups only
};

// The memory of a capture, which a graph keeps for all of its captures: it is too large for the
// heap to find quickly (0.5 us each time beside a driver that takes and frees a lot). NULL: no
// memory.
rondo__capture *rondo__capture_create(void);
void rondo__capture_destroy(rondo__capture *capture);  // NULL is fine

// Enters a capture that the backend has just begun on `origin`, with the id that it gave (0: it
// broke at once); the caller ends it with rondo__capture_close.
//
// Errors:    STATE; then nothing is open.
RONDO_MUST_USE rondo_status rondo__capture_open(rondo__capture *capture, rondo_stream *origin,
                                                uint64_t id, rondo_capture_mode mode,
                                                const char *label);

// False while there is no participant, which costs no lock to see. Threads: safe.
static inline bool rondo__capture_has_participants(rondo__capture *capture) {
    return atomic_load_explicit(&capture->participants, memory_order_acquire) != NULL;
}

// The program destroys a stream that takes part in the capture, and no driver lets go of it before
// the end: the capture keeps it until then. False: the capture has ended meanwhile.
bool rondo__capture_keep_stream(rondo__capture *capture, rondo_stream *stream);

// Takes the capture, which the backend has ended, out of the list, lets the participants close,
// and hands the participants to the caller. Where no graph came of it, the participants
// undo what they did. *out_kept: the streams that it kept, for rondo__stream_destroy_kept.
rondo__participant *rondo__capture_close(rondo__capture *capture, bool has_succeeded,
                                         rondo_stream **out_kept);

// The capture begun by a graph that `stream` records into, directly or in a conditional body; NULL
// when there is none. *out_id (may be NULL) gets the id of the driver's capture, a body's own id
// inside a body.
//
// Errors:    DRIVER, LOST; STATE when that capture is broken already.
// Threads:   safe; the result lives until the thread that began it ends it.
RONDO_MUST_USE rondo_status rondo__capture_find(rondo_stream *stream, rondo__capture **out_capture,
                                                uint64_t *out_id);

// Whether any capture of a graph is open in global mode, on any device.  Threads: safe.
bool rondo__capture_is_global_open(void);

// Where a stream records.
typedef struct rondo__place {
    rondo__capture_state state;
    rondo__capture *capture;  // NULL: none, or one that no graph began
    uint64_t id;              // of that capture, or of the body that the stream records
} rondo__place;

// Asks the backend where the stream records. BROKEN, too, where only Rondo knows that no graph may
// come of the capture: by a call that it refused, or by a break in another part of it.
//
// Errors:    DRIVER, LOST.
// Threads:   one thread per stream.
// Cost:      nothing for streams that certainly do not record.
RONDO_MUST_USE rondo_status rondo__capture_locate(rondo_stream *stream, rondo__place *out_place);
// The state alone.
RONDO_MUST_USE rondo_status rondo__capture_get_state(rondo_stream *stream,
                                                     rondo__capture_state *out_state);

// The slow half of rondo__capture_refuse_broken.
rondo_status rondo__capture_check_broken(rondo_stream *stream, const char *call);

// STATE for `call` when the stream takes part in a capture that is known to be broken. Costs two
// loads as long as no capture of the device is.
//
// Errors:    STATE, DRIVER, LOST.
// Threads:   one thread per stream.
RONDO_MUST_USE static inline rondo_status rondo__capture_refuse_broken(rondo_stream *stream,
                                                                       const char *call) {
    if (__builtin_expect(
            atomic_load_explicit(&stream->device->broken_capture_count, memory_order_relaxed) == 0,
            1)) {
        return RONDO_STATUS_OK;
    }
    return rondo__capture_check_broken(stream, call);
}

// The capture with this id, or with a body of this id that is being recorded; or NULL. The caller
// holds device->capture_list_lock.
rondo__capture *rondo__capture_find_listed(rondo_device *device, uint64_t id);

// Whether the capture with this id was begun by a graph (or is a conditional body of one) and has
// not ended.
bool rondo__capture_is_open(rondo_device *device, uint64_t id);

// STATE when `stream` records into a capture that Rondo did not begin, where `what` ("pool", say)
// would miss the end and the replays. Costs nothing for streams that certainly do not record, and a
// question to the driver where the program has the native stream.
//
// Errors:    STATE, DRIVER.
RONDO_MUST_USE rondo_status rondo__capture_refuse_foreign(rondo_stream *stream, const char *call,
                                                          const char *what);

// The participant of that type and key, or NULL.  Threads: safe.
rondo__participant *rondo__capture_find_participant(rondo__capture *capture,
                                                    const rondo__participant_type *type,
                                                    const void *key);
// Adds it at the end; the capture owns it from now on.  Threads: safe.
void rondo__capture_add_participant(rondo__capture *capture, rondo__participant *participant);

// Notes that the capture took a block from a pool. Does nothing unless the blocks were asked for.
// Threads: safe.
void rondo__capture_note_block(rondo__capture *capture, const void *address, size_t bytes);

// Enters the body `branch` of the conditional `node` of `parent`; `body` already records into it.
// *out_id gets the id of the body.
//
// Errors:    NO_MEMORY, DRIVER.
RONDO_MUST_USE rondo_status rondo__capture_add_body(rondo__capture *capture, rondo_stream *parent,
                                                    rondo__node_handle node, uint32_t branch,
                                                    rondo_stream *body, uint64_t *out_id);
// `body` records no more.  Threads: safe.
void rondo__capture_close_body(rondo__capture *capture, const rondo_stream *body);
// The body with this id, open or closed; NULL: none. With capture->lock held.
const rondo__capture_body *rondo__capture_get_body(const rondo__capture *capture, uint64_t id);

// Whether that is the id of the capture or of one of its bodies, open or closed.  Threads: safe.
bool rondo__capture_holds(rondo__capture *capture, uint64_t id);
// The entry of a body by its id; NULL: `id` is the outermost capture.  Threads: safe.
const rondo__capture_body *rondo__capture_find_body(rondo__capture *capture, uint64_t id);

// For each participant in turn. finish stops at the first failure.
RONDO_MUST_USE rondo_status rondo__capture_finish(rondo__capture *capture);
RONDO_MUST_USE rondo_status rondo__capture_enter_scope(rondo__capture *capture,
                                                       rondo_stream *parent);
RONDO_MUST_USE rondo_status rondo__capture_leave_body(rondo__capture *capture, rondo_stream *body);

// For a graph's list of participants.
RONDO_MUST_USE rondo_status rondo__participants_enter_child(rondo__participant *list,
                                                            rondo__capture *capture,
                                                            rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo__participants_leave_child(rondo__participant *list,
                                                            rondo__capture *capture,
                                                            rondo_stream *stream);
RONDO_MUST_USE rondo_status rondo__participants_prepare_replay(rondo__participant *list,
                                                               rondo_stream *stream);
void rondo__participants_note_replay(rondo__participant *list, rondo_stream *stream);
// prepare_replay cancels those before a failing one by itself; `end` is NULL for all.
void rondo__participants_cancel_replay(rondo__participant *list, const rondo__participant *end);
void rondo__participants_destroy(rondo__participant *list);
