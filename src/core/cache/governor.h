// cache/governor.h — whether a key is captured, replayed or run eagerly: decided by what was
// measured. No device and no clock is asked here, so that tests can plant any times.
//
// Let E be the time of an eager run, R of a replay, C of a capture with its executable, all for one
// key, as they are measured, or expected from keys of about the same E. The rules:
//
//   1. The first run of a key is eager. From the second on the key is captured as soon as it has
//      been run eagerly at least C / (E - R) times since it last had a graph: a key that came so
//      often may come as often again, and then the capture has paid back. So at worst a capture
//      costs as much again as the key has spent already.
//   2. Where R is not expected to be below E, or C is high, a capture is tried all the same once it
//      costs less than a hundredth of what the key has spent: expectations may be wrong.
//   3. A graph that goes before it has paid back doubles what rules 1 and 2 ask for. So keys that
//      push each other out of the cache are captured less and less often.
//   4. No key is captured while graphs that went before they had paid back have lost more than a
//      sixteenth of what all runs so far would have taken eagerly. So in the long run, whatever the
//      keys do, a cache takes at most that much longer than no cache, and what the graphs held now
//      have cost.
//   5. A graph goes when its replays are slower than eager runs by more than an eighth. Compared is
//      the longer of the call and the device's time. (Before a capture only calls are compared: how
//      much of the device's time is waiting for the calls cannot be told.)
//   6. One run in 4096 of a key with a graph is eager, and one in 256 where R is above E / 2 or E
//      is known from one or two runs only: so that E is not that of the first runs, which are often
//      slow.
//
// Times are medians of the latest samples, because single ones are disturbed by other programs.
// Turned down: means (one disturbed sample of 1 ms is 1000 replays), and comparing sums of the
// whole past (it would forget that a machine has changed).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "rondo/graph_cache.h"

enum {
    RONDO__COST_SAMPLES = 7,
    RONDO__EXPERIENCE_CLASSES = 16,
    RONDO__SAMPLED_FIRST = 8,   // runs of each kind that are all measured
    RONDO__SAMPLED_EVERY = 64,  // then one in so many
};

// The latest samples of one time.
typedef struct rondo__cost {
    uint64_t median_ns;  // the lower of two in the middle, since the first is often slow; 0: none
    uint64_t sample_count;
    uint64_t samples[RONDO__COST_SAMPLES];
} rondo__cost;

void rondo__cost_add(rondo__cost *cost, uint64_t ns);

// Why a key has no graph, or what is to be said of the one that it has.
typedef enum rondo__reason {
    RONDO__REASON_NOT_RUN,
    RONDO__REASON_COUNTING,    // rules 1 to 3
    RONDO__REASON_LOSSES,      // rule 4
    RONDO__REASON_NEVER,       // the policy
    RONDO__REASON_FAILED,      // it could not be captured
    RONDO__REASON_SLOWER,      // rule 5
    RONDO__REASON_PINNED,      // all that may be held are pinned
    RONDO__REASON_BACKGROUND,  // a capture is under way
    RONDO__REASON_HELD,
} rondo__reason;

// The memory of one key. The members that every hit reads come first.
typedef struct rondo__measures {
    uint64_t run_count;
    uint64_t replay_count;
    uint64_t held_replay_count;  // of the graph held
    bool is_slower;              // rule 5: the graph is to go
    rondo__cost eager;
    rondo__cost replay;
    rondo__cost eager_device;
    rondo__cost replay_device;
    uint64_t eager_count;
    uint64_t waiting_count;  // eager runs since it last had a graph, or a capture failed
    uint64_t paid_ns;        // what the graph held has cost
    rondo__reason reason;
    uint32_t unpaid_count;  // graphs in a row that went before they had paid back
    uint32_t fail_count;    // captures in a row that failed
    uint64_t capture_count;
    uint64_t capture_ns;
    uint64_t instantiate_ns;
    uint64_t update_ns;
} rondo__measures;

// The cost of captures and replays so far, relative to eager runs, in classes by the time of an
// eager run (one class for each power of four); and the cost of executables for each node.
typedef struct rondo__experience {
    struct {
        uint32_t capture_count;
        uint32_t replay_count;
        double capture_ratio;  // C / E
        double replay_ratio;   // R / E
    } classes[RONDO__EXPERIENCE_CLASSES];
    uint32_t instantiate_count;
    uint32_t update_count;  // tries to patch, whatever came of them
    uint32_t choice_count;
    double instantiate_ns;
    double update_ns;
    double spent_ns;  // rule 4: what all runs would have taken eagerly
    double lost_ns;   // rule 4: by graphs that have gone, and captures that failed
} rondo__experience;

// A run of the key has begun.
static inline void rondo__governor_note_run(rondo__measures *m, rondo__experience *experience) {
    m->run_count += 1;
    experience->spent_ns += (double)m->eager.median_ns;
}

// Whether the run after `count` others of its kind is measured.
static inline bool rondo__governor_is_sampled(uint64_t count) {
    return count < RONDO__SAMPLED_FIRST || count % RONDO__SAMPLED_EVERY == 0;
}

// Rules 1 to 4, the policy, and captures that failed: whether this run, which finds no graph, is to
// capture. Sets the reason.
bool rondo__governor_wants_capture(rondo__measures *m, const rondo__experience *experience,
                                   rondo_cache_policy policy);
// Rule 6: whether this run, which finds a graph, is eager.
bool rondo__governor_wants_eager(const rondo__measures *m, rondo_cache_policy policy);

// Notes of events. A graph is held from note_graph to note_loss.
void rondo__governor_note_graph(rondo__measures *m, rondo__experience *experience,
                                uint64_t capture_ns, uint64_t executable_ns, bool was_patched);
void rondo__governor_note_failure(rondo__measures *m, rondo__experience *experience);
void rondo__governor_note_loss(rondo__measures *m, rondo__experience *experience);
// A replay was measured; rule 5.
void rondo__governor_note_replay(rondo__measures *m, rondo__experience *experience, uint64_t ns,
                                 rondo_cache_policy policy);

// ---- objects with one graph each ---------------------------------------------------------------

typedef enum rondo__choice {
    RONDO__CHOICE_EAGER,
    RONDO__CHOICE_GIVE_UP,  // eager, and the graph goes
    RONDO__CHOICE_CAPTURE,  // and replay
    RONDO__CHOICE_REPLAY,
} rondo__choice;

// Decides for the plans of an executor, by the same rules. (Steps that nobody waits for need
// others: governed_step.h.)
typedef struct rondo__governor {
    rondo__experience experience;  // of all its objects
    // Test hook: what an eager run, a capture or a replay took, not the clock. NULL: none.
    uint64_t (*get_ns)(void *user_data, rondo__choice choice);
    void *user_data;
} rondo__governor;

// What the object's run does that begins now.
rondo__choice rondo__governor_choose(rondo__governor *governor, rondo__measures *m);
// Whether the time of the run with this choice is wanted.
bool rondo__governor_is_timed(const rondo__measures *m, rondo__choice choice);
// The object has a graph, which took so long.
void rondo__governor_note_capture(rondo__governor *governor, rondo__measures *m, uint64_t ns);
// The run was made; ns: what it took, 0: not known.
void rondo__governor_note_end(rondo__governor *governor, rondo__measures *m, rondo__choice choice,
                              uint64_t ns);

// The choice and its reason: a line of text, or an object of JSON.
void rondo__governor_describe(const rondo__governor *governor, const rondo__measures *m,
                              rondo__text *text, bool is_json);

// "85 us", "1.2 ms".
typedef struct rondo__duration {
    char text[32];
} rondo__duration;

rondo__duration rondo__duration_format(double ns);

// ---- executables -------------------------------------------------------------------------------

// Whether patching an executable that has to go is cheaper than making another, and what it was.
bool rondo__governor_prefers_update(rondo__experience *experience);
void rondo__governor_note_executable(rondo__experience *experience, bool was_tried, uint64_t ns,
                                     uint64_t node_count);

// Runs after which a capture has paid back; 0: never, or not known.
uint64_t rondo__governor_get_payback(const rondo__measures *m, const rondo__experience *experience);

// Writes the choice and its reason. failure: of REASON_FAILED; may be NULL.
void rondo__governor_explain(const rondo__measures *m, const rondo__experience *experience,
                             rondo_cache_policy policy, const char *failure, char *out_text,
                             size_t bytes);
