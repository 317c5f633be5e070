// tests/truth/truth.h — what a driver does with graphs, question by question.
//
// Each question is a function that tries something with a driver and puts what it saw into words;
// the table beside it has the words that are known (driver 580, CUDA 13.0). The same table is asked
// of a GPU's driver, and of the fake one, which so cannot be unlike it unnoticed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend/cuda/driver/cuda_abi.h"

// The driver, by the names that it exports; NULL: it lacks that one.
typedef struct truth_driver {
#define RONDO__CUDA_SYMBOL(need, name, version, exported, arguments) \
    rondo__cu_result(*name) arguments;
#include "backend/cuda/driver/cuda_symbols.h"
#include "support/driver_symbols.h"
#undef RONDO__CUDA_SYMBOL
} truth_driver;
extern truth_driver d;

typedef struct truth_question {
    const char *id;  // a number: once answered by an H100 or an H200; a letter first: by NVIDIA's
                     // pages and the backend's tests on GPUs
    const char *text;
    void (*ask)(void);
    const char *known;     // the answer of driver 580
    const char *not_fake;  // why the fake driver is not asked; NULL: it is
} truth_question;

// The lists, each closed by a question without an id.
extern const truth_question truth_kernels[], truth_memory[], truth_updates[], truth_captures[],
    truth_bodies[], truth_made[], truth_taken[];

enum { TRUTH_WORDS = 1024 };

// What a question finds: a stream that records nothing and waits for nobody, a second one, a third
// that the legacy stream waits for; words of device memory, all 1; kernels.
typedef struct truth_world {
    rondo__cu_device device;
    rondo__cu_context context;
    rondo__cu_stream stream, other, blocking;
    rondo__cu_address words;
    uint32_t *pinned;  // words of pinned memory, all 7
    // work(word, us, a, b): waits so many microseconds, then word = word * a + b.
    rondo__cu_function work;
    rondo__cu_function negate;     // the same parameters: word = ~word
    rondo__cu_function cluster;    // the same: word = blocks of its cluster; NULL: an older GPU
    rondo__cu_function wide;       // one parameter of 4096 bytes (word, value, ...): word = value
    rondo__cu_function condition;  // rondo_condition of backend/cuda/graph/cuda_conditional.c
    const char *module_text;
    bool is_fake;
} truth_world;
extern truth_world w;

// ---- words ------------------------------------------------------------------------------------

// Adds to the answer, behind "; ".
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);
const char *name_of(rondo__cu_result code);     // "ok", or the driver's name for it
const char *state_of(rondo__cu_stream stream);  // "no capture", "capture lives", "capture broken"
const char *result_of(int32_t result);          // of an update
bool must(rondo__cu_result code, const char *call);  // false, and said, when it failed
#define MUST(call)              \
    if (!must((call), #call)) { \
        return;                 \
    }

// ---- work -------------------------------------------------------------------------------------

rondo__cu_address word_at(size_t index);
uint32_t read_word(size_t index);  // waits
void write_word(size_t index, uint32_t value);
rondo__cu_result work_on(rondo__cu_stream stream, size_t index, uint32_t us, uint32_t a,
                         uint32_t b);
rondo__cu_result work_with(rondo__cu_stream stream, rondo__cu_function function,
                           rondo__cu_launch_attribute attribute, size_t index, uint32_t us,
                           uint32_t a, uint32_t b);
// The parameters of a node that does the same; valid until the next call.
rondo__cu_kernel_node describe_work(size_t index, uint32_t us, uint32_t a, uint32_t b);
rondo__cu_fill_node describe_fill(size_t index, uint32_t value, unsigned element_bytes,
                                  size_t width);
void do_nothing(void *data);

// ---- graphs; what a question makes is destroyed behind it ---------------------------------------

void begin(int mode);       // on w.stream
rondo__cu_graph end(void);  // NULL, and said, when it fails
rondo__cu_graph new_graph(void);
void keep_graph(rondo__cu_graph graph);
rondo__cu_graph_exec instantiate(rondo__cu_graph graph);  // NULL, and said
rondo__cu_result try_instantiate(rondo__cu_graph graph, uint64_t flags, int32_t *out_result,
                                 rondo__cu_graph_exec *out_exec);
rondo__cu_event new_event(unsigned flags);
void launch(rondo__cu_graph_exec exec);  // and waits
rondo__cu_graph_node node_at(rondo__cu_graph graph, size_t index);
size_t count_nodes(rondo__cu_graph graph);
void say_update(rondo__cu_graph_exec exec, rondo__cu_graph graph);
// The graph that a stream records, and the node that its next one stands behind (NULL: none).
rondo__cu_graph get_recorded(rondo__cu_stream stream, rondo__cu_graph_node *out_last);
// A conditional node behind a launch that sets its handle from a word; its bodies.
rondo__cu_graph_node add_condition(rondo__cu_graph graph, int type, unsigned body_count,
                                   size_t word, uint64_t *out_handle, rondo__cu_graph *bodies);
rondo__cu_result set_condition(rondo__cu_stream stream, uint64_t handle, size_t word);
// Records into a graph, by w.stream.
rondo__cu_result begin_in(rondo__cu_graph graph);
