// random/random_internal.h — what the files of this room share: the generator, and its kernels.
#ifndef RONDO_RANDOM_RANDOM_INTERNAL_H
#define RONDO_RANDOM_RANDOM_INTERNAL_H

#include <pthread.h>
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

// A stream on which the state was used since it was last written; the first entry may be the
// writer.
typedef struct rondo__random_user {
    rondo__stream_tag *tag;  // retained
    uint32_t number;         // of the stream
    bool is_writer;
} rondo__random_user;

// A capture in progress that uses the generator.
typedef struct rondo__random_recording {
    const char *label;  // of the graph; borrowed
    struct rondo__random_recording *next;
} rondo__random_recording;

struct rondo_generator {
    rondo_device *device;  // retained
    atomic_int reference_count;
    uint32_t number;     // for messages: "generator 3"
    uint64_t *state;     // in device memory: seed, offset
    rondo_event *event;  // to order one stream after another; guarded by lock
    void *functions[RONDO__RANDOM_KERNEL_COUNT];
    // Guards the rest. Recursive: a graph that was recorded into another one has the generator in
    // common with it. Held from where a replay is prepared to where it was put on its stream; who
    // needs several takes them by their numbers, ascending.
    pthread_mutex_t lock;
    // The number of the stream that wrote the state last, when nobody has used it since and nothing
    // is pending: on that stream a graph may be replayed as it is. 0: look closer.
    uint32_t settled_stream;
    bool is_issuing;              // inside a caller's launch function
    rondo_generator_state start;  // is_dirty: what the state is to be set to
    bool is_dirty;
    uint64_t pending;  // counters that eager ops took beyond the state's offset
    uint64_t epoch;    // of marks: counts changes of the state
    rondo__random_user *users;
    size_t user_count;
    size_t user_capacity;
    rondo__random_recording *recordings;
    // For rondo_generator_get_state, which puts a copy on a stream of its own and waits for it
    // without the lock above. Made when first needed; guarded by reader_lock, which is taken first.
    pthread_mutex_t reader_lock;
    rondo_stream *reader;
    uint64_t *read_words;  // pinned: seed, offset
};

// Runs `issue` with the relative position of `counters` counters on `stream`, eagerly or in the
// stream's capture, and takes them if it succeeds. NULL: takes them at once.
typedef rondo_status (*rondo__random_issue)(rondo_generator *generator, rondo_stream *stream,
                                            uint64_t relative, void *data);
RONDO_MUST_USE rondo_status rondo__generator_draw(rondo_generator *generator, rondo_stream *stream,
                                                  uint64_t counters, const char *call,
                                                  rondo__random_issue issue, void *data,
                                                  uint64_t *out_relative);

// Takes the lock, for `call`. STATE, and it is not taken, inside a caller's launch function: the
// range is taken, and the kernel not yet on the stream.
RONDO_MUST_USE rondo_status rondo__generator_enter(rondo_generator *generator, const char *call);

// Lets a graph be replayed on `stream`: writes what is to be written of the state, and orders that
// after all other uses. From there to rondo__generator_end_replay, on the same thread, nobody else
// uses the generator. After a failure there is nothing to end.
//
// Errors:    STATE, NO_MEMORY, DRIVER, LOST.
// Threads:   safe; several generators by their numbers, ascending.
// Cost:      a lock and a comparison, while the generator stays on one stream.
RONDO_MUST_USE rondo_status rondo__generator_begin_replay(rondo_generator *generator,
                                                          rondo_stream *stream);
void rondo__generator_end_replay(rondo_generator *generator);

// The caller holds the lock.
RONDO_MUST_USE rondo_status rondo__generator_launch_advance(rondo_generator *generator,
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

#endif  // RONDO_RANDOM_RANDOM_INTERNAL_H
