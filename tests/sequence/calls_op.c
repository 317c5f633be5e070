// Calls of ops one by one and of models that are recorded; checked graphs; arguments that no call
// takes.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "rondo/stepper.h"
#include "rondo/update.h"
#include "sequence/sequence.h"
#include "support/fake/fake_cuda.h"
#include "support/short_forms.h"

// ---- what a thread makes once -----------------------------------------------------------------

static rondo_status infer_same(rondo_op_node *self, const rondo_tensor *inputs, size_t input_count,
                               rondo_tensor *outputs, size_t output_count) {
    (void)self;
    (void)input_count;
    (void)output_count;
    outputs[0].dtype = inputs[0].dtype;
    outputs[0].shape = inputs[0].shape;
    return RONDO_STATUS_OK;
}

static rondo_status prepare_detour(rondo_op_node *self, rondo_op_preparation *preparation) {
    (void)self;
    preparation->workspace_bytes = sizeof(int32_t);
    return RONDO_STATUS_OK;
}

static rondo_status launch_detour(rondo_op_node *self, const rondo_op_launch *launch) {
    (void)self;
    const rondo_status status = rondo_stream_copy(
        launch->stream, launch->workspace, launch->inputs[0].data, 4, RONDO_COPY_DEVICE_TO_DEVICE);
    return status != RONDO_STATUS_OK
               ? status
               : rondo_stream_copy(launch->stream, launch->outputs[0].data, launch->workspace, 4,
                                   RONDO_COPY_DEVICE_TO_DEVICE);
}

static const rondo_tensor one_word = {.dtype = RONDO_DTYPE_I32, .shape = {1, {1}}};

rondo_status tools_register(void) {
    const rondo_op_definition definition = {
        .struct_size = sizeof definition,
        .domain = "test.sequence",
        .name = "Detour",
        ONE_TO_ONE,
        .infer = infer_same,
        .capture = RONDO_OP_CAPTURE_YES,
        .host = {.prepare = prepare_detour, .launch = launch_detour},
        .cuda = {.prepare = prepare_detour, .launch = launch_detour}};
    return rondo_op_register(&definition);
}

// y = -x, of one number.
static rondo_status make_program(rondo_program **out_program) {
    rondo_builder *builder = NULL;
    rondo_status status = rondo_builder_create(NULL, &builder);
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, 1));
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_node(builder, "Neg", (const char *[]){"x"}, 1,
                                        (const char *[]){"y"}, 1, NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_add_output(builder, "y", NULL);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_finish(builder, out_program);
    }
    rondo_builder_destroy(builder);
    return status;
}

static float feed_value, fetch_value;  // pageable memory

static rondo_binding bind(const char *name, void *data, rondo_device *device) {
    return (rondo_binding){
        name, {.dtype = RONDO_DTYPE_F32, .shape = {1, {1}}, .data = data, .device = device}};
}

// Without NVRTC, and over the fake driver, there is no executor: then nothing is recorded of it.
static void make_executor(rondo_device *device, tools *t) {
    float fed = 1;
    float fetched = 0;
    const rondo_binding feed = bind("x", &fed, NULL);
    rondo_binding fetch = bind("y", &fetched, NULL);
    if (make_program(&t->program) == RONDO_STATUS_OK &&
        rondo_executor_create(t->program, device, NULL, &t->executor) == RONDO_STATUS_OK &&
        rondo_executor_run(t->executor, &feed, 1, &fetch, 1) != RONDO_STATUS_OK) {
        rondo_executor_destroy(t->executor);
        t->executor = NULL;
    }
}

rondo_status tools_create(rondo_device *device, tools *out_tools) {
    const rondo_op_options options = {.struct_size = sizeof options, .domain = "test.sequence"};
    *out_tools = (tools){0};
    make_executor(device, out_tools);
    return rondo_op_prepare(device, "Detour", &options, &one_word, 1, 1, &out_tools->op);
}

void tools_destroy(tools *t) {
    rondo_op_destroy(t->op);
    rondo_executor_destroy(t->executor);
    rondo_program_destroy(t->program);
}

// ---- ops --------------------------------------------------------------------------------------

// At a multiple of 256 bytes.
static operand pick_wide(const world *w, const stream_model *s, uint32_t number) {
    const int index = w->slots[number / 2 % SLOT_COUNT];
    if (number % 2 != 0 && index >= 0 && may_use_block(w, s, &w->blocks[index])) {
        return (operand){.first = w->blocks[index].word, .count = 1, .block = index};
    }
    return (operand){.first = CELL_COUNT + (int)(number / 2 % WIDE_COUNT), .count = 1, .block = -1};
}

static bool refuse_in_place(world *w, capture *c, rondo_status status) {
    const bool may_be_broken = c != NULL && (c->is_broken || c->may_be_broken);
    (void)expect(w, status, may_be_broken ? CAN_INVALID | CAN_STATE : CAN_INVALID, "rondo_op_put");
    if (c != NULL) {
        break_capture(w, c);
    }
    return true;
}

// What the next op of a frame comes behind: the ops before it, and all that they come behind.
static uint64_t close_ops(const frame *f) {
    uint64_t closure = f->ops;
    for (int i = 0; i < f->nodes->count; ++i) {
        closure |= (f->ops >> i & 1) != 0 ? f->nodes->nodes[i].ancestors : 0;
    }
    return closure;
}

// False: it would race.
static bool put_op(world *w, stream_model *s, uint32_t number) {
    capture *c = capture_of(s);
    frame *f = c != NULL && !c->is_broken ? s->frame : NULL;
    const node n = {.kind = NODE_OP,
                    .destination = pick_wide(w, s, number),
                    .source = pick_wide(w, s, number >> 8)};
    const bool is_in_place = n.destination.first == n.source.first;
    const uint64_t former = s->closure;
    s->closure |= f != NULL && !is_in_place ? close_ops(f) : 0;
    if (is_in_place ? number >> 16 != 0 : !can_put(w, s, &n)) {
        s->closure = former;
        return false;
    }
    rondo_tensor x = one_word;
    rondo_tensor y = one_word;
    x.device = y.device = w->context->device;
    x.data = address_of(w, n.source);
    y.data = address_of(w, n.destination);
    const rondo_status status = rondo_op_put(w->tools->op, s->real, &x, 1, &y, 1);
    tell(w, status, "op_put(%s, %d to %d)", name_stream(w, s), n.source.first, n.destination.first);
    if (is_in_place) {
        return refuse_in_place(w, c, status);
    }
    if (c == NULL) {
        return put(w, s, &n, status, "rondo_op_put");
    }
    if (expect_in(w, c, status, CAN_OK, "rondo_op_put") && !c->is_broken) {
        const int index = append_node(w, s, &n);
        s->frame->ops |= UINT64_C(1) << index;
        take_handle(w, s, index);
    }
    return true;
}

// Lets the second of two lines of the program come behind the first.
static void order(world *w, int first, int second, uint32_t event) {
    const any_call recorded = {.a = (uint8_t)(3 * first), .b = (uint8_t)event};
    const any_call waited = {.a = (uint8_t)(3 * second), .b = (uint8_t)event};
    (void)call_record_event(w, &recorded);
    if (!w->has_failed) {
        (void)call_wait_event(w, &waited);
    }
}

// A launch on a line, one on another that is forked from it, and both are joined.
static bool put_on_fork(world *w, int line, uint32_t number) {
    enum { EVENT = 1 };  // none that is external
    stream_model *s = &w->streams[line];
    const int beside = (line + 1 + (int)(number % (STREAM_COUNT - 1))) % STREAM_COUNT;
    stream_model *other = &w->streams[beside];
    if (s->frame == NULL || s->frame->parent != NULL || is_broken(s) ||
        (other->frame != NULL && other->frame != s->frame) || s->scope != NULL ||
        other->scope != NULL) {
        return false;
    }
    order(w, line, beside, EVENT);
    bool was_put = !w->has_failed && put_op(w, s, number >> 2 & 0xffff);
    if (!w->has_failed && !is_broken(s) && other->frame == s->frame) {
        was_put = put_op(w, other, number >> 8 & 0xffff) || was_put;
    }
    if (!w->has_failed && !is_broken(s) && other->frame == s->frame) {
        order(w, beside, line, EVENT);
    }
    return was_put;
}

// Launches of an op that keeps something in between come one behind the other in a capture, and in
// each body by itself, on whichever streams.
bool call_op(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    const int line = (int)(s - w->streams);
    return (line < STREAM_COUNT && k->b % 2 == 0 && put_on_fork(w, line, k->value)) ||
           (!w->has_failed && put_op(w, s, k->value & 0xfffff));
}

// ---- models -----------------------------------------------------------------------------------

// Pageable memory cannot be part of a graph, which is found before anything is recorded.
bool call_record_model(world *w, const any_call *k) {
    stream_model *s = pick_stream(w, k->a);
    if (w->tools->executor == NULL) {
        return false;
    }
    rondo_device *device = w->context->device;
    const bool is_feed = k->b % 2 == 0;
    const rondo_binding feed =
        is_feed ? bind("x", &feed_value, NULL) : bind("x", w->memory + 768, device);
    const rondo_binding fetch =
        is_feed ? bind("y", w->memory + 832, device) : bind("y", &fetch_value, NULL);
    const rondo_status status =
        rondo_executor_record(w->tools->executor, s->real, &feed, 1, &fetch, 1);
    tell(w, status, "executor_record(%s, pageable %s)", name_stream(w, s),
         is_feed ? "feed" : "fetch");
    (void)expect_in(w, capture_of(s), status, CAN_STATE, "rondo_executor_record");
    return true;
}

// ---- checked graphs ---------------------------------------------------------------------------

enum { CHECKED_NODES = 3, CHECKED_AREAS = 3, CHECKED_STEPS = 10 };

// A graph with check_addresses, and memory that is freed while it lives. Node i fills word i of the
// area that it names.
typedef struct checked {
    rondo_graph *graph;
    rondo_node nodes[CHECKED_NODES];
    int names[CHECKED_NODES];
    uint32_t values[CHECKED_NODES];
    bool is_off[CHECKED_NODES];
    uint32_t *areas[CHECKED_AREAS];  // NULL: freed
    uint32_t *addresses[CHECKED_AREAS];
    bool is_over;
} checked;

static rondo_work describe_fill(const checked *c, int i) {
    return (rondo_work){.struct_size = sizeof(rondo_work),
                        .kind = RONDO_NODE_FILL,
                        .destination = c->addresses[c->names[i]] + i,
                        .fill_value = c->values[i],
                        .element_bytes = 4,
                        .element_count = 1};
}

static rondo_status build_checked(world *w, checked *c) {
    const rondo_graph_options options = {.struct_size = sizeof options, .check_addresses = true};
    rondo_status status = rondo_graph_create(w->context->device, &options, &c->graph);
    for (int i = 0; i < CHECKED_AREAS && status == RONDO_STATUS_OK; ++i) {
        void *address = NULL;
        status = rondo_memory_allocate(w->context->device, RONDO_MEMORY_DEVICE, 4096, &address);
        c->areas[i] = c->addresses[i] = address;
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_graph_build_begin(c->graph);
    }
    for (int i = 0; i < CHECKED_NODES && status == RONDO_STATUS_OK; ++i) {
        const rondo_work work = describe_fill(c, i);
        status = rondo_graph_add_node(c->graph, NULL, 0, &work, &c->nodes[i]);
    }
    return status == RONDO_STATUS_OK ? rondo_graph_capture_end(c->graph) : status;
}

static bool is_gone(const checked *c) {
    bool is_gone = false;
    for (int i = 0; i < CHECKED_NODES; ++i) {
        is_gone = is_gone || c->areas[c->names[i]] == NULL;
    }
    return is_gone;
}

// A driver may give an address away again, to memory of which the model knows nothing.
static bool may_be_taken(const world *w, const void *address) {
    typedef rondo__cu_result ask(void *value, int attribute, rondo__cu_address address);
    if (!w->context->is_fake) {
        return !rondo_device_is_host(w->context->device);
    }
    uint64_t number = 0;
    ask *ask_driver = (ask *)fake_cuda_resolve(NULL, "cuPointerGetAttribute");
    return ask_driver(&number, RONDO__CU_POINTER_ATTRIBUTE_BUFFER_ID,
                      (rondo__cu_address)(uintptr_t)address) == RONDO__CU_SUCCESS;
}

static void patch_checked(world *w, checked *c, uint32_t number) {
    const int i = (int)(number % CHECKED_NODES);
    const int area = (int)(number / 4 % CHECKED_AREAS);
    rondo_patch patch = {.node = c->nodes[i]};
    rondo_work work;
    const bool toggles = number / 16 % 4 == 0;
    const bool moves = !toggles && c->areas[area] != NULL && number / 64 % 2 != 0;
    const checked before = *c;
    if (toggles) {
        c->is_off[i] = number / 64 % 2 != 0;
        patch.toggle = c->is_off[i] ? RONDO_TOGGLE_DISABLE : RONDO_TOGGLE_ENABLE;
    } else {
        c->names[i] = moves ? area : c->names[i];
        c->values[i] = number;
        work = describe_fill(c, i);
        patch.work = &work;
    }
    // Work in memory that is gone is refused; what is switched off, or on already, needs none.
    const bool works = toggles ? before.is_off[i] && !c->is_off[i]
                               : number != before.values[i] || c->names[i] != before.names[i];
    const bool is_refused = works && c->areas[c->names[i]] == NULL;
    const rondo_status status = rondo_graph_patch(c->graph, &patch, 1);
    tell(w, status, "  patch(node %d, area %d%s)", i, c->names[i],
         c->areas[c->names[i]] != NULL ? "" : ", which is gone");
    const bool is_taken = is_refused && may_be_taken(w, c->addresses[c->names[i]] + i);
    (void)expect(w, status, is_refused ? CAN_STATE | (is_taken ? CAN_OK : 0) : CAN_OK,
                 "rondo_graph_patch");
    if (is_refused) {
        *c = before;
        c->is_over = status == RONDO_STATUS_OK;
    }
}

static void replay_checked(world *w, checked *c, stream_model *s) {
    const rondo_status status = rondo_graph_replay(c->graph, s->real);
    tell(w, status, "  replay(%s)", is_gone(c) ? "memory is gone" : "all is there");
    if (!expect(w, status, is_gone(c) ? CAN_STATE : CAN_OK, "rondo_graph_replay")) {
        return;
    }
    for (int i = 0; i < CHECKED_NODES && !w->has_failed; ++i) {
        (void)expect(w,
                     rondo_stream_copy(s->real, w->pinned + i, c->areas[c->names[i]] + i, 4,
                                       RONDO_COPY_DEVICE_TO_HOST),
                     CAN_OK, "rondo_stream_copy");
    }
    (void)expect(w, rondo_stream_synchronize(s->real), CAN_OK, "rondo_stream_synchronize");
    clock_join(&w->host, &s->now);
    for (int i = 0; i < CHECKED_NODES && !w->has_failed; ++i) {
        if (!c->is_off[i] && w->pinned[i] != c->values[i]) {
            world_fail(w, "node %d of a checked graph left %u, not %u", i, (unsigned)w->pinned[i],
                       (unsigned)c->values[i]);
        }
    }
}

static void free_area(const world *w, checked *c, int area) {
    rondo_memory_free(w->context->device, c->areas[area]);
    c->areas[area] = NULL;
}

// From the free on, replays are refused until each node that named the memory names other memory.
bool call_checked(world *w, const any_call *k) {
    stream_model *s = &w->streams[k->a % STREAM_COUNT];
    checked c = {.names = {0, k->b % CHECKED_AREAS, k->c % CHECKED_AREAS}, .values = {1, 2, 3}};
    if (s->frame != NULL || has_capture(w) || w->is_threaded || w->context->is_null) {
        return false;
    }
    (void)expect(w, build_checked(w, &c), CAN_OK, "building a checked graph");
    tell(w, RONDO_STATUS_OK, "a checked graph on %s: areas %d %d %d", name_stream(w, s), c.names[0],
         c.names[1], c.names[2]);
    uint32_t number = k->value;
    for (int step = 0; step < CHECKED_STEPS && !w->has_failed && !c.is_over; ++step) {
        number = number * 1664525u + 1013904223u;
        const int area = (int)(number >> 8) % CHECKED_AREAS;
        if (number >> 28 < 3 && area > 0 && c.areas[area] != NULL) {
            free_area(w, &c, area);
            tell(w, RONDO_STATUS_OK, "  free(area %d)", area);
        } else if (number >> 28 < 9) {
            patch_checked(w, &c, number >> 12);
        } else {
            replay_checked(w, &c, s);
        }
    }
    if (!w->has_failed) {
        (void)expect(w, rondo_stream_synchronize(s->real), CAN_OK, "rondo_stream_synchronize");
        clock_join(&w->host, &s->now);
    }
    rondo_graph_destroy(c.graph);
    for (int i = 0; i < CHECKED_AREAS; ++i) {
        rondo_memory_free(w->context->device, c.areas[i]);
    }
    return true;
}

// ---- arguments that no call takes -------------------------------------------------------------

bool call_hostile(world *w, const any_call *k) {
    rondo_device *device = w->context->device;
    const rondo_stepper_options options = {.struct_size = sizeof options, .mode = 3 + k->c};
    rondo_stepper *stepper = NULL;
    rondo_op *op = NULL;
    rondo_status status = RONDO_STATUS_INVALID;
    switch (k->b % 5) {
        case 0:
            status = rondo_op_prepare(device, "Relu", NULL, &one_word, 1, SIZE_MAX - k->c, &op);
            break;
        case 1:
            status =
                rondo_op_prepare(device, "Concat", NULL, &one_word, SIZE_MAX / (1u + k->c), 1, &op);
            break;
        case 2:
            status = rondo_stepper_create(device, &options, &stepper);
            break;
        case 3:
            rondo_random_philox(1, 2, 3, NULL);
            note_record(w);
            return true;
        default:
            if (rondo_difference_format(NULL, NULL, 0) != 0) {
                world_fail(w, "no difference has a text");
            }
            return true;
    }
    tell(w, status, "hostile(%d)", k->b % 5);
    (void)expect(w, status, CAN_INVALID, "a hostile call");
    rondo_op_destroy(op);
    rondo_stepper_destroy(stepper);
    return true;
}
