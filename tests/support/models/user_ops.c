// SPDX-License-Identifier: Apache-2.0
#include "support/models/user_ops.h"
#include "support/short_forms.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "backend/backend.h"
#include "executor/state/capture_verdict.h"

static atomic_size_t launch_count;
static atomic_bool is_failing;
static atomic_size_t fault_count;        // of `once` and `memory_once`
static atomic_ullong neighbour_capture;  // that the latest `neighbour` was recorded into

static atomic_size_t tick_count;
static rondo_stream *side;  // of `fork`, until the reset

typedef struct step_call {
    const float *from;
    float *to;
    size_t count;
    float add;
} step_call;

static void run_step(void *arguments) {
    const step_call *call = arguments;
    for (size_t i = 0; i < call->count; ++i) {
        call->to[i] = call->from[i] + call->add;
    }
}

static float get_add(const rondo_op_node *node) {
    rondo_attribute add;
    return rondo_op_get_attribute(node, "add", &add) ? add.float_value : 1.0f;
}

rondo_status user_ops_infer_same(rondo_op_node *node, const rondo_tensor *inputs,
                                 size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    outputs[0].dtype = inputs[0].dtype;
    outputs[0].shape = inputs[0].shape;
    return RONDO_STATUS_OK;
}

static rondo_status infer_step(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                               rondo_tensor *outputs, size_t output_count) {
    if (inputs[0].dtype != RONDO_DTYPE_F32) {
        return rondo_op_fail(node, RONDO_STATUS_UNSUPPORTED, "takes f32");
    }
    return user_ops_infer_same(node, inputs, input_count, outputs, output_count);
}

static rondo_status compute_step(rondo_op_node *node, const rondo_tensor *inputs,
                                 size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)input_count;
    (void)output_count;
    run_step(&(step_call){inputs[0].data, outputs[0].data,
                          (size_t)rondo_shape_get_count(&inputs[0].shape), get_add(node)});
    return RONDO_STATUS_OK;
}

// A stream that waits for the launch's stream, and so records, and is not joined.
static rondo_status fork_stream(rondo_stream *stream) {
    rondo_event *event = NULL;
    rondo_status status = RONDO_STATUS_OK;
    if (side == NULL) {
        status = rondo_stream_create(rondo_stream_get_device(stream), NULL, &side);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_event_create(rondo_stream_get_device(stream), 0, &event);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_event_record(event, stream);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_wait_event(side, event);
    }
    rondo_event_destroy(event);
    if (status == RONDO_STATUS_OK) {
        status = rondo_stream_call_host(side, "side", run_step, &(step_call){0}, sizeof(step_call));
    }
    return status;
}

// What the attribute asks for, on a stream that records.
static rondo_status misbehave(const char *fault, rondo_stream *stream) {
    if (strcmp(fault, "wait") == 0) {
        return rondo_stream_synchronize(stream);
    }
    if (strcmp(fault, "wait_silently") == 0) {
        (void)!rondo_stream_synchronize(stream);
    }
    if (strcmp(fault, "refuse") == 0) {
        return RONDO_STATUS_DRIVER;
    }
    if (strcmp(fault, "allocate_in_vain") == 0) {
        return RONDO_STATUS_NO_DEVICE_MEMORY;
    }
    if (strcmp(fault, "memory_once") == 0 && atomic_fetch_add(&fault_count, 1) == 0) {
        return RONDO_STATUS_NO_DEVICE_MEMORY;
    }
    if (strcmp(fault, "once") == 0 && atomic_fetch_add(&fault_count, 1) == 0) {
        return RONDO_STATUS_DRIVER;
    }
    if (strcmp(fault, "neighbour") == 0 &&
        atomic_exchange(&neighbour_capture, stream->marks.capture_id) == stream->marks.capture_id) {
        return RONDO_STATUS_DRIVER;
    }
    if (strcmp(fault, "fork") == 0) {
        return fork_stream(stream);
    }
    return RONDO_STATUS_OK;
}

static rondo_status launch_step(rondo_op_node *node, const rondo_op_launch *launch) {
    (void)atomic_fetch_add(&launch_count, 1);
    rondo_attribute fault;
    bool is_recording = false;
    rondo_status status = rondo_stream_is_recording(launch->stream, &is_recording);
    if (rondo_op_get_attribute(node, "fault", &fault) && status == RONDO_STATUS_OK) {
        const bool is_always = strcmp(fault.string_value, "always") == 0;
        status = is_recording ? misbehave(fault.string_value, launch->stream) : status;
        status = is_always && atomic_load(&is_failing) ? RONDO_STATUS_DRIVER : status;
    }
    if (status != RONDO_STATUS_OK) {
        return status;
    }
    const step_call call = {launch->inputs[0].data, launch->outputs[0].data,
                            (size_t)rondo_shape_get_count(&launch->inputs[0].shape), get_add(node)};
    return rondo_stream_call_host(launch->stream, "step", run_step, &call, sizeof call);
}

// ---- plain C ----------------------------------------------------------------------------------

static rondo_status infer_positive(rondo_op_node *node, const rondo_tensor *inputs,
                                   size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    outputs[0] = (rondo_tensor){.dtype = inputs[0].dtype, .shape = {.rank = 1, .extent = {-1}}};
    return RONDO_STATUS_OK;
}

static rondo_status compute_positive(rondo_op_node *node, const rondo_tensor *inputs,
                                     size_t input_count, rondo_tensor *outputs,
                                     size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    const float *from = inputs[0].data;
    rondo_shape shape = {.rank = 1};
    for (int64_t i = 0; i < inputs[0].shape.extent[0]; ++i) {
        shape.extent[0] += from[i] > 0.0f ? 1 : 0;
    }
    const rondo_status status = rondo_tensor_init(RONDO_DTYPE_F32, &shape, &outputs[0]);
    for (int64_t i = 0, k = 0; status == RONDO_STATUS_OK && k < shape.extent[0]; ++i) {
        if (from[i] > 0.0f) {
            ((float *)outputs[0].data)[k++] = from[i];
        }
    }
    return status;
}

static rondo_status infer_repeat(rondo_op_node *node, const rondo_tensor *inputs,
                                 size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)input_count;
    (void)output_count;
    outputs[0] = (rondo_tensor){.dtype = inputs[0].dtype, .shape = {.rank = 1, .extent = {-1}}};
    if (inputs[1].data == NULL) {
        rondo_op_need_value(node, 1);
    } else {
        outputs[0].shape.extent[0] = *(const int64_t *)inputs[1].data;
    }
    return RONDO_STATUS_OK;
}

static rondo_status compute_repeat(rondo_op_node *node, const rondo_tensor *inputs,
                                   size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)input_count;
    (void)output_count;
    for (int64_t i = 0; i < outputs[0].shape.extent[0]; ++i) {
        ((float *)outputs[0].data)[i] = *(const float *)inputs[0].data;
    }
    return RONDO_STATUS_OK;
}

static rondo_status infer_tick(rondo_op_node *node, const rondo_tensor *inputs, size_t input_count,
                               rondo_tensor *outputs, size_t output_count) {
    (void)node;
    (void)inputs;
    (void)input_count;
    (void)output_count;
    outputs[0] = (rondo_tensor){.dtype = RONDO_DTYPE_F32, .shape = {.rank = 1, .extent = {1}}};
    return RONDO_STATUS_OK;
}

static rondo_status compute_tick(rondo_op_node *node, const rondo_tensor *inputs,
                                 size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)inputs;
    (void)input_count;
    (void)output_count;
    atomic_size_t *ticks = rondo_op_get_data(node);
    *(float *)outputs[0].data = (float)(atomic_fetch_add(ticks, 1) + 1);
    return RONDO_STATUS_OK;
}

static rondo_status compute_mode(rondo_op_node *node, const rondo_tensor *inputs,
                                 size_t input_count, rondo_tensor *outputs, size_t output_count) {
    (void)inputs;
    (void)input_count;
    (void)output_count;
    *(float *)outputs[0].data = rondo_op_is_training(node) ? 1.0f : 0.0f;
    return RONDO_STATUS_OK;
}

#define OP(op_name, inputs, ...)                                                         \
    {                                                                                    \
        .struct_size = sizeof(rondo_op_definition), .domain = "test", .name = (op_name), \
        .input_min = (inputs), .input_max = (inputs), .output_min = 1, .output_max = 1,  \
        __VA_ARGS__                                                                      \
    }

rondo_status user_ops_register(void) {
    static size_t there_count;
    static const char *const attributes[] = {"add", "fault", NULL};
    static const rondo_op_definition definitions[] = {
        OP("Step", 1, .attributes = attributes, .infer = infer_step, .compute = compute_step,
           .host = {.launch = launch_step}, .cuda = {.launch = launch_step}),
        OP("Device", 1, .attributes = attributes, .infer = infer_step,
           .host = {.launch = launch_step}, .cuda = {.launch = launch_step}),
        OP("Positive", 1, .infer = infer_positive, .compute = compute_positive),
        OP("Repeat", 2, .infer = infer_repeat, .compute = compute_repeat),
        OP("Mode", 0, .infer = infer_tick, .compute = compute_mode),
        OP("Tick", 0, .infer = infer_tick, .compute = compute_tick, .flags = RONDO_OP_IMPURE,
           .data = &tick_count),
    };
    rondo_status status = RONDO_STATUS_OK;
    while (there_count < sizeof definitions / sizeof *definitions && status == RONDO_STATUS_OK) {
        status = rondo_op_register(&definitions[there_count]);
        there_count += status == RONDO_STATUS_OK ? 1 : 0;
    }
    return status;
}

void user_ops_reset(void) {
    atomic_store(&fault_count, 0);
    atomic_store(&launch_count, 0);
    atomic_store(&tick_count, 0);
    atomic_store(&neighbour_capture, 0);
    atomic_store(&is_failing, false);
    rondo_stream_destroy(side);
    side = NULL;
    rondo__verdict_forget_all();
}

void user_ops_set_failing(bool wanted) {
    atomic_store(&is_failing, wanted);
}

size_t user_ops_count_launches(void) {
    return atomic_load(&launch_count);
}

static rondo_status add_steps(rondo_builder *builder, size_t count, const char *const *faults) {
    rondo_status status =
        rondo_builder_add_input(builder, &PORT("x", RONDO_DTYPE_F32, USER_OPS_WIDTH));
    for (size_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        char from[32] = "x";
        char to[32] = "y";
        char name[32];
        if (i > 0) {
            (void)snprintf(from, sizeof from, "t%zu", i);
        }
        if (i + 1 < count) {
            (void)snprintf(to, sizeof to, "t%zu", i + 1);
        }
        (void)snprintf(name, sizeof name, "step_%zu", i);
        const char *fault = faults != NULL ? faults[i] : NULL;
        const rondo_attribute attribute = ATTRIBUTE_TEXT("fault", fault);
        const rondo_builder_node_options options = {.struct_size = sizeof options,
                                                    .domain = "test",
                                                    .name = name,
                                                    .attributes = &attribute,
                                                    .attribute_count = fault != NULL ? 1 : 0};
        const char *const inputs[] = {from};
        const char *const outputs[] = {to};
        status = rondo_builder_add_node(builder, "Step", inputs, 1, outputs, 1, &options);
    }
    return status == RONDO_STATUS_OK ? rondo_builder_add_output(builder, "y", NULL) : status;
}

rondo_status user_ops_build_chain(size_t count, const char *const *faults,
                                  rondo_program **out_program) {
    rondo_builder *builder = NULL;
    *out_program = NULL;
    rondo_status status = rondo_builder_create(NULL, &builder);
    if (status == RONDO_STATUS_OK) {
        status = add_steps(builder, count, faults);
    }
    if (status == RONDO_STATUS_OK) {
        status = rondo_builder_finish(builder, out_program);
    }
    rondo_builder_destroy(builder);
    return status;
}

rondo_status user_ops_run_chain(rondo_executor *executor, float *out_y) {
    float x[USER_OPS_WIDTH] = {0};
    const rondo_shape shape = {.rank = 1, .extent = {USER_OPS_WIDTH}};
    const rondo_binding feed = BIND_SHAPE("x", RONDO_DTYPE_F32, x, shape);
    rondo_binding fetch = BIND_SHAPE("y", RONDO_DTYPE_F32, out_y, shape);
    memset(out_y, 0, sizeof x);
    return rondo_executor_run(executor, &feed, 1, &fetch, 1);
}
