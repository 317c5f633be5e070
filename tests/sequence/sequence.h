// sequence.h — random sequences of calls, and a model that knows what must hold after each.
//
// A round is a list of calls made from a seed. Each call is a kind and a few numbers; which object
// a number means is decided when the call is made, from the objects there are then, so that any
// part of a list is a program again. That is what shrinking needs.
//
// The model is the second opinion. It follows every call by the rules of the public headers: which
// stream records into which capture, what broke it, what the graph holds, which blocks are live and
// what stands in memory. Each call says which statuses the model allows. What a program must not do
// (two accesses to one word that nothing orders, a replay over memory given back) is not done: such
// calls are skipped, so that every value is known, and the thread sanitizer sees only the library's
// own races.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/conformance.h"
#include "rondo/models.h"

enum {
    STREAM_COUNT = 4,          // of the program; each is a line of the model's time
    LINE_KEPT = STREAM_COUNT,  // the line of streams destroyed while they recorded
    LINE_COUNT,
    SCOPE_COUNT = 3,
    EVENT_COUNT = 5,
    GRAPH_COUNT = 5,
    SLOT_COUNT = 8,  // blocks that the program holds
    GENERATOR_COUNT = 2,
    ARENA_COUNT = 2,       // shared: the first is checked, the second allows any order
    SMALL_CELL_COUNT = 3,  // predicates: only small numbers are ever written to them
    CELL_COUNT = 12,       // words of the program's own memory; the small cells come first
    WIDE_COUNT = 4,        // more of them, each at a multiple of 256 bytes, as ops want it
    ALL_CELLS = CELL_COUNT + WIDE_COUNT,
    BLOCK_MAX = 96,  // blocks of a round
    WORD_MAX = ALL_CELLS + BLOCK_MAX,
    NODE_MAX = 40,  // of a content; ancestors are a 64-bit set
    BRANCH_MAX = 3,
    CHILD_MAX = 8,
    HANDLE_MAX = 16,                           // of a graph's nodes that the program keeps
    ENDED_MAX = 8,                             // handles that mean nothing any more
    ALL_STREAMS = STREAM_COUNT + SCOPE_COUNT,  // behind the program's: those of bodies
    ROUND_CALLS_MAX = 400,
};

typedef struct any_call {
    uint8_t kind;
    uint8_t a;
    uint8_t b;
    uint8_t c;
    uint32_t value;
} any_call;

// ---- memory -----------------------------------------------------------------------------------

typedef struct ticks {
    uint32_t at[LINE_COUNT];
} ticks;

// Four bytes of device memory: a cell, or the first of a block's. Blocks at one address share it.
typedef struct word {
    uintptr_t address;
    uint32_t value;
    bool is_known;
    int block;      // that wrote it last; -1: none
    ticks written;  // latest accesses of each line
    ticks read;
} word;

typedef struct block_model {
    uintptr_t address;
    size_t bytes;
    int word;
    bool is_live;               // the program may use it
    struct graph_model *graph;  // whose capture it was taken in; NULL: eager
    struct capture *capture;    // while that is open
    struct capture *freed_in;   // freed in this capture, whose end decides
    bool is_temporary;          // freed in the capture that it was taken in
    struct arena_model *arena;  // whose memory it is; NULL: eager
    struct frame *frame;        // that it was taken in, while the capture is open
    uint64_t before;            // nodes of that frame which its stream came behind
    int stream;                 // it was taken for
    uint64_t used_by;           // bit s: stream s was declared or is the block's own
    bool has_data;              // its word holds what was written through it
    bool was_overwritten;       // it had data, and another block's work has written there
    uint64_t round;             // of the arena when it was written last
} block_model;

// ---- what a graph holds -----------------------------------------------------------------------

typedef struct content content;

typedef enum node_kind {
    NODE_FILL,
    NODE_AFFINE,
    NODE_COPY,
    NODE_HOST,
    NODE_DRAW,
    NODE_OP,  // rondo_op_put: a copy by way of memory that all launches of a capture share
    NODE_CHILD,
    NODE_CONDITIONAL,
    NODE_STAMP,  // an external event that is recorded
    NODE_WAIT,   // or waited for
} node_kind;

// The words `first` to `first + count - 1` (cells), or one of a block.
typedef struct operand {
    int first;
    int count;
    int block;  // -1: cells
} operand;

typedef struct node {
    node_kind kind;
    operand destination;  // count 0: none
    operand source;
    uint32_t factor;
    uint32_t term;
    uint32_t element_bytes;  // of a FILL, which cuts the term to them; 0: 4
    int object;              // generator, or event
    bool is_off;             // switched off by a patch
    rondo_scope_kind scope_kind;
    int branch_count;
    content *inner[BRANCH_MAX];  // the child, or the bodies; retained
    uint64_t ancestors;          // bit n: node n of the same content comes before
} node;

struct content {
    int references;
    int count;
    bool takes_in;  // memory of an arena, by a use or by a patch since: see content_takes_in
    node nodes[NODE_MAX];
};

// ---- objects ----------------------------------------------------------------------------------

// Handles of nodes, each with its place in the content.
typedef struct handle_list {
    rondo_node real[HANDLE_MAX];
    int nodes[HANDLE_MAX];
    int count;
    bool has_any;  // also of those that the program did not keep
} handle_list;

typedef struct capture capture;
typedef struct scope_model scope_model;

// Where streams record: the graph itself, or a body.
typedef struct frame {
    capture *owner;
    struct frame *parent;  // NULL: the graph itself
    int node;              // the conditional, in the parent's content
    content *nodes;        // borrowed from the capture or that node
    uint64_t ops;          // nodes that the next op comes behind
    struct frame *next;
} frame;

// A recorded graph's arena, and where that graph was recorded.
typedef struct guest_model {
    struct arena_model *arena;
    const struct stream_model *stream;
    const frame *frame;
} guest_model;

struct capture {
    struct graph_model *graph;
    int origin;  // stream; -1: destroyed
    rondo_capture_mode mode;
    bool is_broken;
    bool may_be_broken;  // another thread may have done it
    bool has_work;       // something was asked for
    frame *frames;       // the latest first; the last is the graph itself
    content *nodes;
    bool draws[GENERATOR_COUNT];      // generators that take part
    bool may_draw[GENERATOR_COUNT];   // those of graphs that it was refused
    bool uses_freed;                  // memory that was given back meanwhile
    guest_model children[CHILD_MAX];  // whose memory recorded graphs use
    int child_count;
    handle_list handles;
    size_t label_depth;  // of the origin at the beginning
};

typedef struct stream_model {
    rondo_stream *real;  // NULL: there is none
    frame *frame;        // NULL: does not record
    uint64_t closure;    // nodes that the next one comes behind
    ticks now;
    scope_model *scope;  // open on it
    size_t label_depth;
} stream_model;

typedef enum event_state { EVENT_NEVER, EVENT_EAGER, EVENT_PLACE, EVENT_ENDED } event_state;

typedef struct event_model {
    rondo_event *real;
    uint32_t flags;
    event_state state;
    frame *frame;  // EVENT_PLACE
    uint64_t closure;
    ticks when;  // EVENT_EAGER
} event_model;

typedef enum graph_state {
    GRAPH_EMPTY,
    GRAPH_RECORDING,
    GRAPH_RECORDED,
    GRAPH_READY,
} graph_state;

typedef struct graph_model {
    rondo_graph *real;
    rondo_graph_options options;
    graph_state state;
    capture *capture;
    content *nodes;     // as they were recorded
    content *executed;  // as they were patched since; NULL where nodes is
    handle_list handles;
    struct arena_model *arena;              // of its memory
    bool has_memory;                        // took blocks
    struct arena_model *arenas[CHILD_MAX];  // that it uses, also by recorded graphs
    int arena_count;
    bool is_stale;  // uses memory that the program gave back
    ticks last;     // replays
    int last_line;  // of the last of them
    uint64_t replay_count;
    bool has_count;  // the library counts the same
} graph_model;

typedef struct arena_model {
    rondo_arena *real;
    bool allows_any_order;
    uint64_t round;
    ticks last;  // replays of its graphs
} arena_model;

typedef struct generator_model {
    rondo_generator *real;
    uint64_t seed;
    uint64_t offset;
    ticks last;
} generator_model;

struct scope_model {
    rondo_scope real;
    bool is_open;
    int parent;  // stream
    frame *parent_frame;
    int node;
    rondo_scope_kind kind;
    int branch_count;
    uint32_t entered;  // branches
    frame *body;       // open
    bool is_misused;   // the parent was used meanwhile
    bool may_be_misused;
};

// What a thread makes once, for all of its rounds.
typedef struct tools {
    rondo_op *op;
    rondo_program *program;
    rondo_executor *executor;  // has run once
} tools;

typedef struct world {
    suite_context *context;
    const tools *tools;
    bool is_threaded;
    uint64_t held_lines;  // bit s: a graph went while its last replay's stream s recorded
    uint32_t *memory;     // CELL_COUNT words on the device
    uint32_t *pinned;     // for reading them back
    uint32_t *counter;    // pinned; host functions count in it
    uint64_t host_count;  // what they must have counted once all is done
    stream_model streams[ALL_STREAMS];
    event_model events[EVENT_COUNT];
    graph_model graphs[GRAPH_COUNT];
    arena_model arenas[ARENA_COUNT];
    arena_model own_arenas[GRAPH_COUNT];
    generator_model generators[GENERATOR_COUNT];
    scope_model scopes[SCOPE_COUNT];
    rondo_pool *pool;
    bool is_pool_shared;
    int slots[SLOT_COUNT];        // blocks; -1: none
    rondo_node ended[ENDED_MAX];  // handles of former recordings, the latest at ended_count - 1
    uint32_t ended_count;
    block_model blocks[BLOCK_MAX];
    int block_count;
    word words[WORD_MAX];
    int word_count;
    ticks host;                                      // what the program has seen to be done
    uint32_t kept_time;                              // of LINE_KEPT
    size_t at;                                       // of the call that is being made
    uint64_t last_sequence;                          // of the error record
    char record[sizeof((rondo_error *)0)->message];  // of the last call that failed
    uint64_t made;
    uint64_t skipped;
    bool is_tracing;
    bool has_failed;
    char failure[2048];
} world;

// ---- memory.c ---------------------------------------------------------------------------------

content *content_create(void);
content *content_retain(content *nodes);
void content_release(content *nodes);
content *content_copy(const content *nodes);  // the same inside

void clock_join(ticks *into, const ticks *other);
// The word at the address, made when there is none yet; -1: there are too many.
int find_word(world *w, uintptr_t address);
// Whether an access to the operand on a stream that runs now would meet others that nothing orders.
bool races_now(const world *w, const stream_model *s, operand o, bool is_write);
// The same for all that a content does.
bool content_races_now(const world *w, const ticks *when, const content *nodes);
// Whether a node would meet others of its capture that nothing orders. A meeting of two blocks at
// one address is the library's fault, which fails the round.
// The line is another stream from now on: blocks that were taken for the former one, or used there,
// are not of this one. Of bodies, those of captures that are over.
void leave_blocks(world *w, int line);
bool races_in_capture(world *w, const frame *f, uint64_t closure, const node *n);
// Whether a node of the content meets one that it is in no order with.
bool races_in_content(const world *w, const content *nodes, int index);
// Runs one node, or all of a content, as a line's access at its time. `graph` is being replayed, or
// NULL.
void run_node(world *w, const node *n, int line, const graph_model *graph);
void run_content(world *w, const content *nodes, int line, const graph_model *graph);
bool content_has(const content *nodes, bool (*matches)(const node *n, int number), int number);
// It, or a graph inside: a graph and those that it was added to share the watch over such memory,
// so a patch of the one counts for the others.
bool content_takes_in(const content *nodes);
bool content_uses_block(const content *nodes, int block);
uint32_t fill_word(const node *n);  // what four bytes are behind it
// Whether there is work: replays of a graph without any are in no order.
bool content_works(const content *nodes);
int content_count(const content *nodes, bool (*matches)(const node *n, int number), int number);

// ---- world.c ----------------------------------------------------------------------------------

// Makes the objects of a round; false: the device would not. w->tools is there.
void world_begin(world *w, suite_context *context, rondo_pool *shared_pool,
                 rondo_arena *shared_arena);
// Gives everything back and checks what must hold at the end.
void world_end(world *w);
// Fails the round, with the call's words; only the first failure counts.
void world_fail(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
// What the tracing says of the call.
void tell(world *w, rondo_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

enum {
    CAN_OK = 1u << RONDO_STATUS_OK,
    CAN_INVALID = 1u << RONDO_STATUS_INVALID,
    CAN_STATE = 1u << RONDO_STATUS_STATE,
    CAN_UNSUPPORTED = 1u << RONDO_STATUS_UNSUPPORTED,
    CAN_NO_DEVICE_MEMORY = 1u << RONDO_STATUS_NO_DEVICE_MEMORY,
};
// Fails the round unless the status is one of those in the mask. Returns whether it is OK.
// The error record may have changed: the next call that succeeds leaves it as it is now.
void note_record(world *w);

bool expect(world *w, rondo_status status, uint32_t mask, const char *call);

// What the model and the library must agree on at any time.
void check_world(world *w);

// ---- captures.c -------------------------------------------------------------------------------

void break_capture(world *w, capture *c);
// A call that global mode forbids was refused.
void break_global(world *w);
// Whether captures forbid a call.
typedef enum ban { BAN_NONE, BAN_PERHAPS, BAN_SURE } ban;
ban find_global_ban(const world *w);
bool has_capture(const world *w);
uint32_t mask_of_ban(ban its);
void close_capture(world *w, capture *c, bool has_succeeded);
// The stream's capture, or NULL.
capture *capture_of(const stream_model *s);
bool is_broken(const stream_model *s);
bool scope_is_open_in(const world *w, const capture *c);
void close_scope(world *w, scope_model *scope);
void forget_block(world *w, int index, const graph_model *except);
void give_up_stream(world *w, int index);
void reset_graph(world *w, graph_model *g);
// The graph may have another executable: no replay of it is ordered behind one of the former whose
// stream records by now.
void renew_graph(world *w, graph_model *g);
// The graph holds a recording, which is taken over, and does just that.
void hold_content(graph_model *g, content *nodes);
// What has been recorded is to be had, beside the executable.
bool has_template(const graph_model *g);
// CUDA's driver looks at addresses when it makes or changes an executable.
bool may_have_lost_addresses(const world *w, const graph_model *g);
// From now on the handles are those of a former recording.
void end_handles(world *w, handle_list *handles);

// ---- calls ------------------------------------------------------------------------------------

typedef struct call_kind {
    const char *name;
    uint32_t weight;
    // False: skipped, because a program must not do that, or there is nothing to do it to.
    bool (*make)(world *w, const any_call *k);
} call_kind;

extern const call_kind call_kinds[];
extern const size_t call_kind_count;

stream_model *pick_stream(world *w, uint32_t number);
// The wanted state is favoured; any other may come, too.
graph_model *pick_graph(world *w, uint32_t number, graph_state wanted);
int index_of(const world *w, const graph_model *g);
operand pick_cell(uint32_t number);
void *address_of(const world *w, operand o);
extern const operand no_operand;
void count_one(void *data);  // a host function; its argument is the counter's address
// Whether the work meets nothing that it is not ordered with; a stream that cannot take it may be
// asked all the same.
bool can_put(world *w, const stream_model *s, const node *n);
// The model's part of work that was asked for: run, recorded or refused.
bool put(world *w, stream_model *s, const node *n, rondo_status status, const char *call);
int append_node(const world *w, stream_model *s, const node *n);
// Asks for the handle of the node that was recorded last.
void take_handle(world *w, stream_model *s, int index);
// As expect, for a call on a stream of the capture (NULL: none): a broken one gives STATE.
bool expect_in(world *w, capture *c, rondo_status status, uint32_t mask, const char *call);
bool may_use_block(const world *w, const stream_model *s, const block_model *b);
const char *name_stream(const world *w, const stream_model *s);

#define DECLARE_CALL(name, weight) bool call_##name(world *w, const any_call *k);
#define EACH_CALL(X)     \
    X(begin, 6)          \
    X(end, 7)            \
    X(abort, 1)          \
    X(fill, 12)          \
    X(affine, 12)        \
    X(copy, 7)           \
    X(host, 4)           \
    X(op, 6)             \
    X(record_model, 1)   \
    X(checked, 1)        \
    X(hostile, 1)        \
    X(careless, 2)       \
    X(record_event, 10)  \
    X(wait_event, 12)    \
    X(replay, 14)        \
    X(upload, 1)         \
    X(instantiate, 1)    \
    X(update, 2)         \
    X(add_graph, 4)      \
    X(reset, 2)          \
    X(wait_stream, 1)    \
    X(ask_stream, 1)     \
    X(wait_for_event, 1) \
    X(ask_event, 1)      \
    X(ask_time, 1)       \
    X(wait_device, 1)    \
    X(allocate, 8)       \
    X(release, 7)        \
    X(use, 2)            \
    X(trim, 1)           \
    X(take_memory, 1)    \
    X(begin_round, 2)    \
    X(draw, 7)           \
    X(set_seed, 1)       \
    X(get_state, 1)      \
    X(rewind, 1)         \
    X(push, 2)           \
    X(pop, 2)            \
    X(open_scope, 4)     \
    X(enter_scope, 3)    \
    X(leave_scope, 3)    \
    X(end_scope, 4)      \
    X(control, 2)        \
    X(step, 2)           \
    X(destroy_stream, 1) \
    X(destroy_event, 1)  \
    X(destroy_graph, 1)  \
    X(ask_node, 2)       \
    X(patch, 14)         \
    X(build, 4)          \
    X(recapture, 3)      \
    X(look, 2)           \
    X(check, 3)
EACH_CALL(DECLARE_CALL)
#undef DECLARE_CALL

// Whether each order that the model knows of two nodes with handles is a path in the graph.
void check_orders(world *w, const graph_model *g);

// ---- calls_op.c -------------------------------------------------------------------------------

rondo_status tools_register(void);  // once
rondo_status tools_create(rondo_device *device, tools *out_tools);
void tools_destroy(tools *t);

// ---- rounds.c ---------------------------------------------------------------------------------

// The calls of a round: the same for the same seed and number.
size_t make_round(uint64_t seed, uint64_t round, uint32_t length, any_call *out_calls);
// Makes the calls; those whose `keep` is false are left out (NULL: all). False: the round failed.
bool run_round(world *w, const any_call *calls, size_t count, const bool *keep);
