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

// Generators that graphs use together, and their lock (generator_group.c).
typedef struct rondo__random_group {
    pthread_mutex_t lock;  // recursive: a launch function may use other generators of the group
    uint32_t number;       // of the generator that it was made for
    uint32_t depth;        // how often the thread that holds the lock took it; guarded by lock
    atomic_int reference_count;
    struct rondo__random_group *followed;  // retained; guarded by lock; NULL: this one counts
} rondo__random_group;

// In front what each replay looks at.
struct rondo_generator {
    // Its lock guards what is not said to be otherwise. Held from where a replay is prepared to
    // where it was put on its stream.
    _Atomic(rondo__random_group *) group;
    // The number of the stream that wrote the state last, when nobody has used it since and nothing
    // is pending: on that stream a graph may be replayed as it is. 0: look closer.
    uint32_t settled_stream;
    bool is_issuing;  // inside a caller's launch function
    // Of no lock: the same for life.
    uint32_t number;                 // for messages: "generator 3"
    rondo__random_group *own_group;  // retained, and so all groups that this generator was ever in
    rondo_device *device;            // retained
    uint64_t *state;                 // in device memory: seed, offset
    void *functions[RONDO__RANDOM_KERNEL_COUNT];
    atomic_int reference_count;
    rondo_event *event;           // to order one stream after another
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
// range is taken, and the kernel not yet on the stream. rondo__generator_unlock gives it back.
RONDO_MUST_USE rondo_status rondo__generator_enter(rondo_generator *generator, const char *call);

// Lets a graph be replayed on `stream`: writes what is to be written of the state, and orders that
// after all other uses. The caller holds the lock until the graph is launched.
//
// Errors:    STATE, NO_MEMORY, DRIVER, LOST.
// Threads:   holds the lock.
RONDO_MUST_USE rondo_status rondo__generator_prepare_replay(rondo_generator *generator,
                                                            rondo_stream *stream);

// Whether rondo__generator_prepare_replay has nothing to do. The caller holds the lock of `group`;
// false, too, when that is not the generator's.
static inline bool rondo__generator_is_prepared(const rondo_generator *generator,
                                                const rondo__random_group *group,
                                                const rondo_stream *stream) {
    return atomic_load_explicit(&generator->group, memory_order_relaxed) == group &&
           generator->settled_stream == stream->number && !generator->is_issuing;
}

// The caller holds the lock.
RONDO_MUST_USE rondo_status rondo__generator_launch_advance(rondo_generator *generator,
                                                            rondo_stream *stream, uint64_t count);

// ---- locks (generator_group.c) ------------------------------------------------------------------

// The group of a new generator; NULL: no memory. Groups that it follows go with it.
rondo__random_group *rondo__random_group_create(uint32_t number);
void rondo__random_group_release(rondo__random_group *group);  // NULL is fine

// Takes the lock of the generator's group, and returns that. A thread may take it again.
rondo__random_group *rondo__generator_lock(rondo_generator *generator);
void rondo__generator_unlock(rondo_generator *generator);
void rondo__random_group_unlock(rondo__random_group *group);

// From now on the two are in one group, for life.
//
// Errors:    STATE: this thread holds the lock of one, inside a caller's launch function.
// Threads:   safe; holds no lock but those of launch functions around it.
RONDO_MUST_USE rondo_status rondo__generator_unite(rondo_generator *a, rondo_generator *b);

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
