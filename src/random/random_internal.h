// random/random_internal.h — what the files of this room share: the generator, and its kernels.
#ifndef RONDO_RANDOM_RANDOM_INTERNAL_H
#define RONDO_RANDOM_RANDOM_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/backend.h"
#include "backend/capture.h"
#include "rondo/random.h"

// ---- kernels (random_host.c, cu/random.cu) ------------------------------------------------------

typedef enum rondo__random_kernel {
    RONDO__RANDOM_WORDS,
    RONDO__RANDOM_UNIFORM,
    RONDO__RANDOM_UNIFORM_F64,
    RONDO__RANDOM_NORMAL,
    RONDO__RANDOM_NORMAL_F64,
    RONDO__RANDOM_BERNOULLI,
    RONDO__RANDOM_DROPOUT,
    RONDO__RANDOM_SET,
    RONDO__RANDOM_ADVANCE,
    RONDO__RANDOM_KERNEL_COUNT,
} rondo__random_kernel;

// The names of the CUDA kernels, and the C functions that do the same on the host.
extern const char *const rondo__random_kernel_names[RONDO__RANDOM_KERNEL_COUNT];
rondo_host_function rondo__random_get_host_function(rondo__random_kernel kernel);

// What all but the last two take; 8-byte words, so that C and CUDA lay it out the same. The kernels
// say which of a to threshold they use, and for what.
typedef struct rondo__random_arguments {
    const uint64_t *state;  // seed, offset
    uint64_t relative;      // of the op's first counter to the offset
    uint64_t count;         // elements
    void *out;
    const void *in;
    uint8_t *mask;
    double a, b, c;
    uint64_t bits;
    uint64_t threshold;
    uint64_t dtype;
    uint64_t in_dtype;
    uint64_t is_aligned;  // whole groups may be moved at once
} rondo__random_arguments;

typedef struct rondo__random_set_arguments {
    uint64_t *state;
    uint64_t seed;
    uint64_t offset;
} rondo__random_set_arguments;

typedef struct rondo__random_advance_arguments {
    uint64_t *state;
    uint64_t count;
} rondo__random_advance_arguments;

// The loops, compiled for each instruction set. Each does the groups [begin, end) of an op: a group
// is what one counter gives, four words or two numbers of double precision.
typedef void (*rondo__random_loop)(const rondo__random_arguments *arguments, uint64_t begin,
                                   uint64_t end);
typedef struct rondo__random_loops {
    rondo__random_loop run[RONDO__RANDOM_SET];  // by kernel
} rondo__random_loops;

// ---- the generator (generator.c) ----------------------------------------------------------------

// One thread uses a generator at a time; what is not said to be otherwise is that thread's.
struct rondo_generator {
    // First what each replay looks at.
    _Atomic uint64_t user;  // number of the thread that is inside a call or a replay; 0: none
    uint32_t depth;         // how often that thread entered
    // The stream of the last use, when that left the state as the next replay needs it. A graph may
    // be replayed there as it is. 0: look closer.
    uint32_t settled_stream;
    // The same for life, but for the count.
    uint32_t number;  // for messages: "generator 3"
    atomic_int reference_count;
    rondo_device *device;  // retained
    uint64_t *state;       // in device memory: seed, offset
    void *functions[RONDO__RANDOM_KERNEL_COUNT];
    rondo_event *event;  // orders one stream after another
    // What the host knows of the state.
    rondo_generator_state start;  // is_dirty: what the state is to be set to
    bool is_dirty;
    uint64_t pending;                // counters that eager ops took beyond the state's offset
    uint64_t epoch;                  // counts changes of the state, for marks
    rondo__stream_tag *last_stream;  // retained: of the last use; NULL: not used yet
    // For rondo_generator_get_state; made when first needed.
    rondo_stream *reader;
    uint64_t *read_words;  // pinned: seed, offset
};

// Begins a use of the generator by this thread, which may be inside one already; `call` is for the
// message. rondo__generator_leave ends it.
//
// Errors:    STATE: another thread is inside a use.
// Threads:   safe; waits for nobody.
RONDO_MUST_USE rondo_status rondo__generator_enter(rondo_generator *generator, const char *call);
void rondo__generator_leave(rondo_generator *generator);

// Launches a kernel that draws from `stream`'s next counters, which are at the distance `relative`
// from the offset.
typedef rondo_status (*rondo__random_issue)(rondo_generator *generator, rondo_stream *stream,
                                            uint64_t relative, void *data);

// Calls `issue` for the next `counters` counters on `stream`, eagerly or in the stream's capture,
// and takes them if it succeeds. NULL: takes them at once. *out_relative is their distance from the
// offset.
//
// Errors:    STATE, NO_MEMORY, DRIVER, LOST, and those of `issue`.
// Threads:   one thread at a time; others are refused.
RONDO_MUST_USE rondo_status rondo__generator_draw(rondo_generator *generator, rondo_stream *stream,
                                                  uint64_t counters, const char *call,
                                                  rondo__random_issue issue, void *data,
                                                  uint64_t *out_relative);

// Lets a graph be replayed on `stream`: orders that after the last use, and writes what is to be
// written of the state. The caller has entered, and leaves once the graph is launched.
//
// Errors:    STATE, NO_MEMORY, DRIVER, LOST.
// Threads:   the one that entered.
RONDO_MUST_USE rondo_status rondo__generator_settle(rondo_generator *generator,
                                                    rondo_stream *stream);

// Launches the kernel that adds `count` to the offset. Reads what is the same for life.
RONDO_MUST_USE rondo_status rondo__generator_launch_advance(const rondo_generator *generator,
                                                            rondo_stream *stream, uint64_t count);

// ---- in captures (generator_capture.c) ----------------------------------------------------------

// rondo__generator_draw for a stream that records into `id` of `capture`.
RONDO_MUST_USE rondo_status rondo__generator_draw_recorded(
    rondo_generator *generator, rondo_stream *stream, rondo__capture *capture, uint64_t id,
    uint64_t counters, rondo__random_issue issue, void *data, uint64_t *out_relative);
// rondo_generator_get_mark and rondo_generator_rewind there.
RONDO_MUST_USE rondo_status rondo__generator_mark_recorded(rondo_generator *generator,
                                                           rondo__capture *capture, uint64_t id,
                                                           rondo_generator_mark *out_mark);
RONDO_MUST_USE rondo_status rondo__generator_rewind_recorded(rondo_generator *generator,
                                                             rondo__capture *capture, uint64_t id,
                                                             const rondo_generator_mark *mark);
// Refuses `call` while a capture in progress draws from the generator.
//
// Errors:    STATE: the message names the graph.
// Threads:   safe.
RONDO_MUST_USE rondo_status rondo__generator_refuse_recording(const rondo_generator *generator,
                                                              const char *call);

#endif  // RONDO_RANDOM_RANDOM_INTERNAL_H
