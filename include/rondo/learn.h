// rondo/learn.h — a step whose arguments change from replay to replay, with its code unchanged.
//
//   static rondo_status step(rondo_stream *stream, const rondo_value *arguments, void *user_data);
//
//   const rondo_argument arguments[] = {
//       {.struct_size = sizeof(rondo_argument), .name = "x", .kind = RONDO_ARGUMENT_POINTER,
//        .extent = 4096},
//       {.struct_size = sizeof(rondo_argument), .name = "rate", .kind = RONDO_ARGUMENT_FLOAT}};
//   rondo_learned_create(device, NULL, arguments, 2, step, NULL, &learned);
//   for (;;) {
//       rondo_learned_run(learned, stream, (rondo_value[]){{.pointer = x}, {.single = rate}}, 2);
//   }
//
// The first run learns. Rondo records the step tens to a thousand times, with other values
// and with addresses of its own choosing, executes none of these recordings, and explains every
// word of every node by the arguments. Then it records the step with the values that were given,
// and replays that. Later runs write the words whose argument has changed, and replay.
//
// What a word may be:
//
//   the same in every recording
//   a pointer argument + a constant (+ an integer argument times a constant)
//   memory that the step takes from a rondo_pool + a constant
//   a * x + c                  x: an integer argument, or the product of two
//   ceil(x / d)                in grids, byte counts and arguments alike
//   a float argument, a double one, or one converted to the other: what is computed from floats
//                              is an argument of its own, computed before the run
//   bytes of a struct argument
//
// Padding in packed arguments counts: fill it with zeros, as an initialiser of the whole struct
// does.
//
// What is learned is tested before it is believed: more recordings must be foretold exactly.
// docs/changing_arguments.md says which words are looked at, which recordings are made, and how
// likely a special case is missed; name one that the program knows of (rondo_learned_try), leave it
// out of the domain, or set check_every. A step whose words, nodes, edges, functions or launch
// attributes cannot be explained is refused: the report says which, and what was seen. Then every
// run does what `fallback` says, and still returns OK; with RONDO_LEARN_REFUSE it fails, which
// suits tests.
//
// The step is called for recordings on any values of the domains, so it must have no effect but on
// the stream, must not read what its pointers point to (in a trial they point to memory that must
// not be touched), and must hand its arguments to the nodes themselves. What it writes to memory by
// itself, a table of pointers say, no replay writes again: where a recorded copy reads it that is
// found and refused, and where no node shows an argument the report and the log warn. Memory that
// the step takes from pools has the same sizes for all values.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_LEARN_H
#define RONDO_LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"
#include "rondo/export.h"
#include "rondo/graph.h"
#include "rondo/graph_cache.h"
#include "rondo/pool.h"
#include "rondo/status.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

typedef struct rondo_learned rondo_learned;

// ---- arguments --------------------------------------------------------------------------------

typedef int32_t rondo_argument_kind;
enum {
    RONDO_ARGUMENT_POINTER = 0,
    RONDO_ARGUMENT_INT8 = 1,
    RONDO_ARGUMENT_INT16 = 2,
    RONDO_ARGUMENT_INT32 = 3,
    RONDO_ARGUMENT_INT64 = 4,
    RONDO_ARGUMENT_UINT8 = 5,
    RONDO_ARGUMENT_UINT16 = 6,
    RONDO_ARGUMENT_UINT32 = 7,
    RONDO_ARGUMENT_UINT64 = 8,
    RONDO_ARGUMENT_BOOL = 9,
    RONDO_ARGUMENT_FLOAT = 10,
    RONDO_ARGUMENT_DOUBLE = 11,
    RONDO_ARGUMENT_STRUCT = 12,  // bytes that the step only hands on
};

typedef union rondo_value {  // ABI: fixed
    void *pointer;
    int64_t integer;            // INT8 to INT64
    uint64_t unsigned_integer;  // UINT8 to UINT64; BOOL: 0 or 1
    float single;               // FLOAT
    double number;              // DOUBLE
    const void *bytes;          // STRUCT: where it stands, for the time of the call
} rondo_value;

// An argument of the step, and which values it may have: its domain. Trials take values of the
// domain, and no run takes others.
typedef struct rondo_argument {
    size_t struct_size;  // sizeof(rondo_argument)
    const char *name;    // for messages; copied; NULL: its number
    rondo_argument_kind kind;
    uint64_t bytes;      // STRUCT: its size, up to 256
    uint64_t extent;     // POINTER: bytes behind it that the step may use; at least 1
    uint64_t alignment;  // POINTER: a power of two up to 2^20 that it is a multiple of; 0: 256
    rondo_memory_kind memory;  // POINTER: what it points to
    // POINTER: memory that Rondo and the driver do not know, from malloc say. Its existence is not
    // checked.
    bool is_unchecked;
    // Integers and floats: the least and the most; both 0: all values of the kind. (The domain of
    // 0 alone is given by `values`.)
    rondo_value least;
    rondo_value most;
    uint64_t multiple_of;  // integers; 0 and 1: all
    // All but pointers: the only values; NULL: those above. Copied, structs as well.
    const rondo_value *values;
    size_t value_count;
    // POINTER: as C's restrict has it: in no run has it a byte of its extent in common with another
    // pointer argument. No trial draws such then, and each run with other pointers looks (INVALID).
    bool is_exclusive;
} rondo_argument;

// Puts the step's work for these arguments on the stream: one value for each, in the order of the
// descriptions. In trials the stream records, and what is recorded is only looked at.
typedef rondo_status (*rondo_learned_function)(rondo_stream *stream, const rondo_value *arguments,
                                               void *user_data);

// What runs do when the step cannot be learned.
typedef int32_t rondo_learned_fallback;
enum {
    // EAGER and RECAPTURE by turns, until it is clear which of them keeps the calling thread for a
    // shorter time; then that.
    RONDO_LEARN_CHEAPEST = 0,
    RONDO_LEARN_EAGER = 1,   // put it on the stream without a graph
    RONDO_LEARN_REFUSE = 2,  // fail with UNSUPPORTED
    // A graph for each list of values that was met, in a rondo_graph_cache.
    RONDO_LEARN_CACHE = 3,
    // The same, but pointers to device memory do not count: the step gets buffers of Rondo's own in
    // their place, which lie where they lie. A run copies the extents there, and back behind the
    // step, which must reach that memory by these arguments alone. Where two pointers lead to
    // memory in common the run is eager.
    RONDO_LEARN_FIXED = 4,
    RONDO_LEARN_RECAPTURE = 5,  // record the step at each run, and update the whole graph
};

typedef struct rondo_learned_options {
    size_t struct_size;  // sizeof(rondo_learned_options)
    const char *label;   // of the graph, for dumps and errors; copied; NULL means "learned"
    rondo_learned_fallback fallback;
    rondo_arena *arena;       // as rondo_graph_options has it
    rondo_capture_mode mode;  // of all recordings
    bool check_addresses;     // as rondo_graph_options has it
    // Each n-th run with changed arguments records the step once more, and compares every byte of
    // every node with what the executable holds; 0: only the runs that draws_wanted asks for. Costs
    // a recording, executes nothing. A difference is reported as a refusal, and this run and all
    // later ones fall back.
    uint32_t check_every;
    uint64_t seed;  // of the trials' values; 0: one of Rondo's own, always the same
    // Of the cache of RONDO_LEARN_CACHE and _FIXED, without capture_in_background; read at once.
    // NULL: its defaults, with the label, arena and mode above.
    const rondo_graph_cache_options *cache;
    // Wall time that learning may spend on recordings which are not always made; 0: 50 ms.
    uint64_t learn_ns;
    // Draws (values at random) after which neither learning nor runs make more of them; 0: 688. 1:
    // no run is compared because of them.
    uint64_t draws_wanted;
    // Runs of a step that was learned are measured, too, in blocks in a row, and now and then some
    // are eager: where replays are slower than that by more than an eighth, runs put the step on
    // the stream, until replays are faster again. The first eager runs cost at most a sixteenth of
    // what all runs so far have taken, and one run; later ones are made only while all of them cost
    // no more than a hundredth. Runs that are compared with recordings, as the first ones are, do
    // not count. rondo_learned_describe tells.
    bool measures;
} rondo_learned_options;

// Describes a step. Nothing is recorded yet.
//
// arguments  64 at most.
//
// Errors:    INVALID (a description that cannot be: the message names the argument), UNSUPPORTED
//            (the device cannot show or patch recorded nodes).
// Ownership: user_data is borrowed.
RONDO_API RONDO_MUST_USE rondo_status
rondo_learned_create(rondo_device *device, const rondo_learned_options *options,
                     const rondo_argument *arguments, size_t argument_count,
                     rondo_learned_function function, void *user_data, rondo_learned **out_learned);

// Waits for runs in flight and frees everything. Inside the step it does nothing but warn.
RONDO_API void rondo_learned_destroy(rondo_learned *learned);

// Learns the step, and records it for these values, but runs nothing. Without this call the first
// run learns. A refusal is a success of this call, too: the report says so, and runs fall back. If
// the step was learned or refused before, nothing happens.
//
// stream     the step is recorded on it, and on what it forks to.
//
// Errors:    as rondo_learned_run; NO_DEVICE_MEMORY (also for the trials' own memory, which has the
//            extents of the pointers; on the host it costs address space only). Where memory is
//            short or the driver fails, nothing was learned: the next call tries again.
// Capture:   not legal while `stream` records. Trials leave pools, arenas, generators and label
//            scopes as they were.
// Cost:      some 40 recordings and some 15 more for each argument that is a number, none of which
//            is executed or made executable; then as many as options.learn_ns allows, up to
//            options.draws_wanted.
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_learn(rondo_learned *learned,
                                                          rondo_stream *stream,
                                                          const rondo_value *values, size_t count);

// Names values that must be foretold, too: shapes that the program has, a special case that it
// knows of, buffers that are used in place. They are recorded and compared when the step is
// learned, or at the next run where it was; nothing is executed for them. Where they are not
// foretold the step is refused.
//
// values     copied. A pointer may be NULL: one that Rondo makes up. Others are as a run's.
//
// Errors:    INVALID (as rondo_learned_run).
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_try(rondo_learned *learned,
                                                        const rondo_value *values, size_t count);

// Runs the step with these values: learns it at the first call, writes what has changed since the
// last call, and replays. Runs that are still under way keep the values that they had.
//
// Memory is looked at for pointers that have changed, and for all after rondo_memory_free freed
// some on the device. What was allocated by calls of another library, and freed by them, is seen
// where the pointer changes, or with check_addresses.
//
// Errors:    INVALID (count; a value outside its domain; a pointer that is NULL, not aligned,
//            outside any known allocation or freed since, or with less behind it than the extent;
//            one that is_exclusive and shares memory: the message names the argument), STATE
//            (`stream` records; inside the step; as rondo_graph_replay), UNSUPPORTED (the step was
//            refused, or fails for these values, and the fallback is RONDO_LEARN_REFUSE); those of
//            the step where it falls back. A failure does not affect the next run.
// Capture:   not legal while `stream` records.
// Cost:      unchanged values: rondo_graph_replay and a comparison of the list. Otherwise one call
//            of the driver for each node with a word that has changed; and a recording as long as
//            fewer draws were made than options.draws_wanted.
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_run(rondo_learned *learned,
                                                        rondo_stream *stream,
                                                        const rondo_value *values, size_t count);

// The graph behind it, borrowed, for statistics and dumps; empty until the step was learned. A dump
// shows the values of the first run. Do not reset, update or destroy it.
RONDO_API rondo_graph *rondo_learned_get_graph(rondo_learned *learned);

#if defined(RONDO_EXPERIMENTAL)

// The cache of RONDO_LEARN_CACHE and RONDO_LEARN_FIXED, borrowed, for statistics; otherwise NULL. A
// key is the list of values, eight bytes each (0 for a struct), and then the structs, each filled
// up with zeros to a multiple of eight; a step without arguments has the key of one zero. Do not
// run, clear or destroy it.
RONDO_API rondo_graph_cache *rondo_learned_get_cache(rondo_learned *learned);

#endif  // RONDO_EXPERIMENTAL

// ---- what was learned -------------------------------------------------------------------------

typedef int32_t rondo_learned_state;
enum {
    RONDO_LEARNED_NOT_YET = 0,
    RONDO_LEARNED_PROVED = 1,  // as far as the report's draws go
    RONDO_LEARNED_REFUSED = 2,
};

// Why a step was refused: RONDO_REFUSAL_<name>, what was found, what to do. Values are permanent.
#define RONDO_REFUSAL_MAP(X)                                                                       \
    X(NONE, 0, "nothing was refused", "")                                                          \
    X(STEP_FAILED, 1, "the step failed for values of its domain",                                  \
      "describe the domain more narrowly, or mend the step for these values")                      \
    X(NODES, 2, "the step records other nodes or edges for other values",                          \
      "keep the values apart that lead to other nodes: one learned step for each")                 \
    X(FUNCTION, 3, "a node calls another function for other values",                               \
      "describe the domain more narrowly: larger alignments, multiples, a smaller range")          \
    X(WORD, 4,                                                                                     \
      "a word depends on the arguments in a way that is not among those that are learned, "        \
      "or on something else",                                                                      \
      "give the word's value as an argument of its own, or keep hidden state out of the step")     \
    X(AMBIGUOUS, 5, "a word has two explanations that no values could keep apart",                 \
      "describe the domain more widely")                                                           \
    X(OPAQUE, 6, "a node does not show its arguments",                                             \
      "launch it with separate parameters, on a driver of 12.4 or later")                          \
    X(FIXED, 7, "a word depends on the arguments in a node that cannot be patched",                \
      "see the message for what such a node would have to be")                                     \
    X(INNER, 8, "a word depends on the arguments inside a conditional body or a recorded graph",   \
      "keep what changes at the outermost level")                                                  \
    X(MEMORY, 9, "the step takes memory from a pool, the size of which depends on the arguments",  \
      "take what the largest values need")                                                         \
    X(TABLE, 10, "the step writes host memory that a recorded copy reads, which no replay writes", \
      "hand the values to a node, or write that memory outside the step before each run")          \
    X(UNSEEN, 11, "no word of any node depends on an argument (a warning: all recordings agree)",  \
      "leave the argument out, unless the step hands it on through memory, which no replay does")  \
    X(CHANGED, 12,                                                                                 \
      "the step recorded something else than was foretold, though all words were "                 \
      "explained before",                                                                          \
      "keep hidden state out of the step, such as counters; values may be rare special cases")     \
    X(LAUNCH, 13,                                                                                  \
      "a kernel is launched with other attributes for other values: clusters, priority, a window " \
      "of memory to keep in the cache",                                                            \
      "keep the values apart that lead to other attributes, which no patch can change: one "       \
      "learned step for each")                                                                     \
    X(EXCLUDED, 14, "the step fails for some values (a warning: such runs are recorded)",          \
      "describe the domain more narrowly, or say is_exclusive of pointers that share no memory")

typedef int32_t rondo_refusal;
enum {
#define RONDO_REFUSAL_ENUM(name, value, what, advice) RONDO_REFUSAL_##name = (value),
    RONDO_REFUSAL_MAP(RONDO_REFUSAL_ENUM)
#undef RONDO_REFUSAL_ENUM
};

typedef struct rondo_learned_report {
    size_t struct_size;  // sizeof(rondo_learned_report)
    rondo_learned_state state;
    uint64_t node_count;       // of the step, with those inside others
    uint64_t word_count;       // looked at: parameters and fields
    uint64_t slot_count;       // words that depend on arguments
    uint64_t changing_count;   // nodes that have such
    uint64_t recording_count;  // that learning took
    uint64_t learn_ns;         // wall time of it
    rondo_refusal refusal;     // RONDO_REFUSAL_NONE: proved, or not tried yet
    const char *what;          // what was found, in plain words; static text
    const char *advice;        // what to do; static text
    bool has_node;             // the refusal is about a node
    uint64_t node;             // its id: its number on the walk over all nodes, inner ones too
    char node_name[64];        // "memcpy", "memset" or the function's name
    char node_label[128];      // path of its scope (rondo/label.h)
    char word[48];             // "parameter 2, bytes 0 to 7", "grid.x", "bytes"
    char message[480];         // the particulars, with the values seen
    rondo_status step_status;  // STEP_FAILED: what the step returned
    // What a run does that falls back: the chosen fallback; RECAPTURE if graphs cannot be kept,
    // because the step records something else for equal values or hands arguments on through
    // memory; for CHEAPEST EAGER or RECAPTURE, once that is known.
    rondo_learned_fallback fallback;
    uint64_t fallback_ns;    // that such runs keep the calling thread for, the latest mean; 0: none
    uint64_t finding_count;  // rondo_learned_list_findings
    uint64_t unseen_count;   // of these: arguments that no word depends on
    uint64_t excluded_count;  // of these: values for which the step fails
    uint64_t special_count;   // special recordings that were foretold
    uint64_t draw_count;      // draws, of the proof and of runs, that were foretold
    // The share of what is drawn that a special case must cover to be missed by that many draws
    // with a probability of 1 in 1000; 1 without draws.
    double missed_share;
} rondo_learned_report;

// What was learned, or why nothing was.
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_get_report(const rondo_learned *learned,
                                                               rondo_learned_report *out_report);

// Why the step was refused, or a warning.
typedef struct rondo_learned_finding {
    size_t struct_size;  // sizeof(rondo_learned_finding)
    rondo_refusal refusal;
    bool is_warning;     // the step is learned all the same
    const char *what;    // static text
    const char *advice;  // static text
    bool has_node;
    uint64_t node;
    char node_name[64];
    char node_label[128];
    char word[48];
    char message[480];
} rondo_learned_finding;

// Lists findings, the report's refusal first, 65 at most.
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_list_findings(const rondo_learned *learned,
                                                                  rondo_learned_finding *findings,
                                                                  size_t capacity,
                                                                  size_t *out_count);

// A word that depends on arguments.
typedef struct rondo_learned_slot {
    size_t struct_size;  // sizeof(rondo_learned_slot)
    uint64_t node;       // rondo_graph_get_node describes it
    char node_name[64];
    char node_label[128];
    char word[48];
    uint32_t bytes;     // of the word
    uint32_t argument;  // that it depends on
    uint32_t second;    // the same, where it depends on two; otherwise `argument`
    char formula[96];   // "x + 256", "n * 4", "ceil(n / 256)"
} rondo_learned_slot;

// Lists slots, by node. None unless the step was proved.
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_list_slots(const rondo_learned *learned,
                                                               rondo_learned_slot *slots,
                                                               size_t capacity, size_t *out_count);

// Writes the report and the slots as RONDO_TEXT_PLAIN or RONDO_TEXT_JSON.
//
// Errors:    INVALID (another format).
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_describe(const rondo_learned *learned,
                                                             rondo_text_format format,
                                                             rondo_write_function write,
                                                             void *user_data);

// "WORD" and so on; "UNKNOWN" for a value not in the list.
RONDO_API const char *rondo_refusal_get_name(rondo_refusal refusal);

// Counters since the step was created.
typedef struct rondo_learned_stats {
    size_t struct_size;             // sizeof(rondo_learned_stats)
    uint64_t run_count;             // that succeeded
    uint64_t unchanged_count;       // of those, with the values of the run before
    uint64_t patched_node_count;    // nodes written
    uint64_t fallback_count;        // runs that fell back
    uint64_t check_count;           // runs that were compared with a recording
    uint64_t recording_count;       // of trials, checks and fallbacks, and the graph's own
    uint64_t fallback_eager_count;  // of fallback_count: without a graph
} rondo_learned_stats;

// The counters.
RONDO_API RONDO_MUST_USE rondo_status rondo_learned_get_stats(const rondo_learned *learned,
                                                              rondo_learned_stats *out_stats);

RONDO_EXTERN_C_END

#endif  // RONDO_LEARN_H
