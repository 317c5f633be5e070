// rondo/random.h — random numbers that a replayed graph draws anew.
//
//   rondo_generator_create(device, 42, &generator);
//   rondo_random_normal(generator, stream, RONDO_DTYPE_F32, noise, count, 0.0, 1.0);   // eager
//
//   rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL);
//   rondo_random_dropout(generator, stream, RONDO_DTYPE_F32, x, y, NULL, count, 0.1);
//   rondo_graph_capture_end(graph);
//   for (;;) { rondo_graph_replay(graph, stream); }   // each replay drops other elements
//
// A generator is a position in an endless sequence: a seed, and an offset that says how many
// counters were used up. A counter gives four random words (Philox 4x32-10). The same seed and
// offset give the same words, and the same numbers to the last bit, on every device. Eager ops and
// replays use up counters in stream order, so that `eager, replay, eager, replay` gives what four
// eager ops would.
//
// Seed and offset live in device memory, and kernels read them when they run. A captured graph
// moves the offset on by itself, as its last node, in conditional bodies as each body's last; so
// a replay adds no launch, except for one tiny kernel when eager ops or a new seed came before it.
// A generator joins a capture by its first use; any number of them may take part in any number of
// graphs. A capture that fails or is aborted leaves them where they stood.
//
// A generator is used by one thread at a time: by draws, by the calls below, and by replays of
// graphs that draw from it. Where two threads use one at the same moment, one of the calls is
// refused (STATE). Create a generator for each thread.
//
// Its uses run in the order of the calls, also on several streams: when the stream changes, Rondo
// makes the new one wait for what the last one was given so far. The last stream may record by
// then, or be destroyed. Only if it records a capture that the program began with its own driver
// calls, Rondo cannot wait for it: while that lasts, uses that must come after it are refused
// (STATE).
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_RANDOM_H
#define RONDO_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/tensor.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_generator rondo_generator;

// Where a generator stands.
typedef struct rondo_generator_state {  // ABI: fixed
    uint64_t seed;
    uint64_t offset;  // counters used up
} rondo_generator_state;

// ---- life -------------------------------------------------------------------------------------

// Makes a generator at the start of the seed's sequence. On CUDA this compiles its kernels or takes
// them from the disk cache.
//
// Errors:    UNAVAILABLE (no NVRTC: the message says how to get it), NO_DEVICE_MEMORY.
// Capture:   breaks captures in global mode, of any thread.
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_create(rondo_device *device, uint64_t seed,
                                                             rondo_generator **out_generator);

// Adds a reference.
RONDO_API void rondo_generator_retain(rondo_generator *generator);

// Gives up a reference. Graphs that use the generator keep references of their own.
// The last one waits for the work that uses it.
//
// Capture:   breaks no capture of any mode.
RONDO_API void rondo_generator_release(rondo_generator *generator);

// ---- the state --------------------------------------------------------------------------------

// Goes to the start of another sequence. Ops and replays that follow this call use it.
//
// Errors:    STATE (a capture in progress uses the generator: the message names both and the
//            capture goes on; or another thread uses it at this moment).
// Capture:   legal while no capture uses the generator.
// Cost:      a few stores; the next use adds one tiny kernel on its stream.
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_set_seed(rondo_generator *generator,
                                                               uint64_t seed);

// Goes to any position: the next op's first counter is state->offset.
//
// Errors:    as rondo_generator_set_seed.
// Capture:   legal while no capture uses the generator.
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_set_state(rondo_generator *generator,
                                                                const rondo_generator_state *state);

// Where the generator stands after everything put on streams so far; waits for that work.
//
// Errors:    STATE (a capture in progress uses the generator, or another thread does at this
//            moment).
// Capture:   legal while no capture uses the generator. It waits, which breaks captures in global
//            mode, of any thread.
// Cost:      a copy to the host, unless the state was set since the last use.
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_get_state(rondo_generator *generator,
                                                                rondo_generator_state *out_state);

#if defined(RONDO_EXPERIMENTAL)

// A position to come back to, cheaper than the state and legal inside a capture.
typedef struct rondo_generator_mark {  // ABI: fixed
    uint64_t scope;                    // capture or conditional body; 0: eager
    uint64_t epoch;                    // changes of the state so far
    uint64_t relative;                 // counters since the last of them
} rondo_generator_mark;

// Remembers where the generator stands for work on `stream`.
//
// Errors:    STATE (the capture is broken, or another thread uses the generator).
// Capture:   the mark is of that capture or conditional body.
// Cost:      no driver call outside of captures.
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_get_mark(rondo_generator *generator,
                                                               rondo_stream *stream,
                                                               rondo_generator_mark *out_mark);

// Goes back (or forward again) to a mark, so that the ops that follow draw the same numbers as
// those after the mark did: recomputing a dropout in a backward pass, say.
//
// Errors:    STATE (the mark is of another capture; a replay, a new seed or a conditional body came
//            between; or another thread uses the generator).
// Capture:   marks of the same capture or conditional body. A failure breaks the capture, whose ops
//            would draw other numbers.
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_rewind(rondo_generator *generator,
                                                             rondo_stream *stream,
                                                             const rondo_generator_mark *mark);

#endif  // RONDO_EXPERIMENTAL

// ---- ops --------------------------------------------------------------------------------------
//
// Element i comes from the word i % 4 of the counter i / 4 of the op; in double precision from the
// words 2 (i % 2) and the next of the counter i / 2. An op uses up the counters it touches, so ops
// never share one. `count` may be 0. `out` must be aligned to its elements.
//
// All of them:
//
// Errors:    INVALID (argument, other device, misaligned address), UNSUPPORTED (dtype; the message
//            lists those there are), STATE (the capture is broken, or is not Rondo's; another
//            thread uses the generator at this moment).
// Ownership: addresses are borrowed until the stream passes this point (for a graph: as long as it
//            is replayed).
// Capture:   one kernel node. A failure breaks the capture, which would lack the op.
// Cost:      one launch.

// Random words, each bit a fair coin.
//
// Source:    Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
RONDO_API RONDO_MUST_USE rondo_status rondo_random_words(rondo_generator *generator,
                                                         rondo_stream *stream, uint32_t *out,
                                                         size_t count);

// Evenly distributed numbers, at least `low` and below `high` (both rounded to the dtype; equal to
// `low` when the two are equal).
//
// dtype      F32, F64, F16 or BF16; the unit interval is cut into 2^24, 2^53, 2^11 or 2^8 parts.
//
// Errors:    INVALID unless low <= high and both, and their difference, are finite.
RONDO_API RONDO_MUST_USE rondo_status rondo_random_uniform(rondo_generator *generator,
                                                           rondo_stream *stream, rondo_dtype dtype,
                                                           void *out, size_t count, double low,
                                                           double high);

// Normally distributed numbers.
//
// dtype      F32, F64, F16 or BF16; the halves are rounded from single precision.
//
// Errors:    INVALID unless `deviation` is at least 0 and both are finite.
// Source:    Box and Muller, "A note on the generation of random normal deviates", 1958.
RONDO_API RONDO_MUST_USE rondo_status rondo_random_normal(rondo_generator *generator,
                                                          rondo_stream *stream, rondo_dtype dtype,
                                                          void *out, size_t count, double mean,
                                                          double deviation);

// Ones with the given probability (in multiples of 2^-32), else zeros.
//
// dtype      of numbers or BOOL: not NONE, strings, sequences or optionals
//
// Errors:    UNSUPPORTED (another dtype); INVALID unless the probability is from 0 to 1.
RONDO_API RONDO_MUST_USE rondo_status rondo_random_bernoulli(rondo_generator *generator,
                                                             rondo_stream *stream,
                                                             rondo_dtype dtype, void *out,
                                                             size_t count, double probability);

// The same with a probability for each element. Those outside of 0 to 1, and NaN, count as the
// nearer end, NaN as 0.
//
// probabilities   F32, F64, F16 or BF16 in device memory
RONDO_API RONDO_MUST_USE rondo_status rondo_random_bernoulli_each(
    rondo_generator *generator, rondo_stream *stream, rondo_dtype probability_dtype,
    const void *probabilities, rondo_dtype dtype, void *out, size_t count);

// y = x / (1 - ratio) where kept, 0 where dropped; an element is dropped with probability `ratio`.
//
// dtype      F32, F64, F16 or BF16
// y          may be x
// mask       gets 1 where kept, 0 where dropped; may be NULL
//
// Errors:    INVALID unless the ratio is from 0 to 1.
// Source:    Srivastava et al., "Dropout", JMLR 15, 2014 (inverted).
RONDO_API RONDO_MUST_USE rondo_status rondo_random_dropout(rondo_generator *generator,
                                                           rondo_stream *stream, rondo_dtype dtype,
                                                           const void *x, void *y, uint8_t *mask,
                                                           size_t count, double ratio);

// ---- random numbers in kernels of your own ------------------------------------------------------

// Counters that belong to the caller's next kernel on a stream. The kernel reads the state when it
// runs, and makes four words of each counter (rondo_philox is in the text below):
//
//   __global__ void my_kernel(rondo_random_range range, ...) {
//       uint64_t i = blockIdx.x * blockDim.x + threadIdx.x;      // i < range.count
//       unsigned words[4];
//       rondo_philox(range.state[0], range.state[1] + range.relative + i, words);
typedef struct rondo_random_range {  // ABI: fixed
    const uint64_t *state;           // in device memory: seed, offset
    uint64_t relative;               // of the first counter to the offset
    uint64_t count;
} rondo_random_range;

// Takes the next `counters` counters for a kernel that the caller launches on `stream`, before
// anything else that uses the generator there; eagerly or in a capture, as the built-in ops do.
// Until it is launched, do not replay a graph that uses the generator, nor set its state: that
// would move on what the kernel is going to read.
//
// Errors:    INVALID (other device), STATE (the capture is broken, or is not Rondo's; another
//            thread uses the generator at this moment).
// Ownership: the state is the generator's: keep a reference until the stream passes the kernel. A
//            graph keeps its own.
// Capture:   records nothing by itself. A failure breaks the capture.
// Cost:      no driver call, or that of rondo_generator_set_seed when a new seed waits.
RONDO_API RONDO_MUST_USE rondo_status rondo_generator_reserve(rondo_generator *generator,
                                                              rondo_stream *stream,
                                                              uint64_t counters,
                                                              rondo_random_range *out_range);

// The CUDA C (and plain C) text of rondo_philox(seed, counter, out_words), to put in front of a
// kernel's own text; static. Copying it into a source file is just as well.
RONDO_API const char *rondo_random_get_device_text(void);

// Four random words; pure, no state; nothing where out_words is NULL. Generators use stream_id 0
// and the counter as the index.
//
// Returns:   the same words on every backend, forever.
// Source:    Salmon et al., Philox 4x32-10, SC 2011.
RONDO_API void rondo_random_philox(uint64_t seed, uint64_t stream_id, uint64_t index,
                                   uint32_t out_words[4]);

RONDO_EXTERN_C_END

#endif  // RONDO_RANDOM_H
