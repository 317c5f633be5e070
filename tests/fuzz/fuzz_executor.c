// A hostile model on the host backend: passes, planning, kernels, capture and replay.
//
// Inputs are small; shapes that an op computes from data may still be large, and loops long: then
// the run ends at the executor's limits, with an error.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "program/program.h"
#include "random_values.h"
#include "rondo/device.h"
#include "rondo/executor.h"
#include "rondo/log.h"
#include "rondo/onnx.h"

enum {
    ELEMENT_COUNT_MAX = 512,    // of each input
    CONSTANT_COUNT_MAX = 4096,  // of each constant
    PORT_COUNT_MAX = 16,
    NODE_COUNT_MAX = 64,
    RUN_COUNT = 3,  // eager, captured, replayed
    MEMORY_LIMIT = 128 << 20,
    LOOP_LIMIT = 200,
    SAMPLES_MAX = 16,  // along a side of a bin of RoiAlign: its square is work that no limit ends
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rondo_device *device;

static void drop_message(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    (void)message;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    rondo_log_set_sink(drop_message, NULL);
    return rondo_device_open("host", &device) == RONDO_STATUS_OK ? 0 : 1;
}

// Whether the program is small.
static bool is_tame(const rondo_program *program) {
    if (program->node_count > NODE_COUNT_MAX || program->declared_count > PORT_COUNT_MAX ||
        program->output_count > PORT_COUNT_MAX) {
        return false;
    }
    for (size_t i = 0; i < program->value_count; ++i) {
        const rondo_tensor *constant = &program->values[i].constant;
        if (constant->dtype != RONDO_DTYPE_NONE &&
            rondo_shape_get_count(&constant->shape) > CONSTANT_COUNT_MAX) {
            return false;
        }
    }
    for (size_t i = 0; i < program->node_count; ++i) {
        const rondo__node *node = &program->nodes[i];
        if (rondo__op_get_int(&node->op, "sampling_ratio", 0) > SAMPLES_MAX) {
            return false;
        }
        for (size_t j = 0; j < node->op.attribute_count; ++j) {
            const rondo__attribute *attribute = &node->op.attributes[j];
            if (attribute->kind == RONDO__ATTRIBUTE_BODY && !is_tame(attribute->body)) {
                return false;
            }
        }
    }
    return true;
}

// Makes a feed; false when the input is not declared well enough, or too large.
static bool make_feed(const rondo_port *port, rondo_binding *out_feed) {
    rondo_shape shape = {.rank = port->rank};
    for (int32_t i = 0; i < port->rank; ++i) {
        shape.extent[i] = port->extent[i] < 0 ? 2 : port->extent[i];
    }
    const bool is_tensor =
        port->dtype != RONDO_DTYPE_SEQUENCE && port->dtype != RONDO_DTYPE_OPTIONAL;
    const int64_t count = rondo_shape_get_count(&shape);
    out_feed->name = port->name;
    return (!is_tensor || (port->rank >= 0 && count >= 0 && count <= ELEMENT_COUNT_MAX)) &&
           fuzz_make_value(port->dtype, port->item_dtype, &shape, &out_feed->tensor);
}

static void run(rondo_program *program, bool optimise, rondo_dtype dtype,
                const rondo_binding *feeds, size_t feed_count, size_t optional_count) {
    rondo_executor_options options = {.struct_size = sizeof options};
    options.op_by_op = !optimise;
    options.memory_limit_bytes = MEMORY_LIMIT;
    options.loop_limit = LOOP_LIMIT;
    options.dtype = dtype;
    rondo_executor *executor = NULL;
    if (rondo_executor_create(program, device, &options, &executor) != RONDO_STATUS_OK) {
        return;
    }
    for (int i = 0; i < RUN_COUNT; ++i) {
        rondo_binding fetches[PORT_COUNT_MAX] = {0};
        size_t fetch_count = rondo_program_get_output_count(program);
        for (size_t j = 0; j < fetch_count; ++j) {
            rondo_port port = {.struct_size = sizeof port};
            if (rondo_program_get_output(program, j, &port) == RONDO_STATUS_OK) {
                fetches[j].name = port.name;
            }
        }
        // Inputs that have a default are fed in every second run.
        rondo_status status = rondo_executor_run(
            executor, feeds, feed_count + (i % 2 == 1 ? optional_count : 0), fetches, fetch_count);
        for (size_t j = 0; j < fetch_count; ++j) {
            if (status != RONDO_STATUS_OK && fetches[j].tensor.data != NULL) {
                abort();  // fetches are written only on success
            }
            rondo_tensor_deinit(&fetches[j].tensor);
        }
        if (status != RONDO_STATUS_OK) {
            break;
        }
    }
    rondo_executor_destroy(executor);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rondo_program *program = NULL;
    rondo_binding feeds[PORT_COUNT_MAX] = {0};
    if (rondo_program_parse_onnx(data, size, &program) != RONDO_STATUS_OK) {
        return 0;
    }
    if (is_tame(program)) {
        size_t feed_count = rondo_program_get_input_count(program);
        size_t optional_count = 0;
        rondo_port port = {.struct_size = sizeof port};
        bool is_fed = true;
        for (size_t i = 0; i < feed_count && is_fed; ++i) {
            is_fed = rondo_program_get_input(program, i, &port) == RONDO_STATUS_OK &&
                     make_feed(&port, &feeds[i]);
        }
        while (is_fed && feed_count + optional_count < PORT_COUNT_MAX &&
               rondo_program_get_optional_input(program, optional_count, &port) ==
                   RONDO_STATUS_OK &&
               make_feed(&port, &feeds[feed_count + optional_count])) {
            optional_count += 1;
        }
        if (is_fed) {
            run(program, true, RONDO_DTYPE_F32, feeds, feed_count, optional_count);
            run(program, false, RONDO_DTYPE_F32, feeds, feed_count, optional_count);
            run(program, true, RONDO_DTYPE_F16, feeds, feed_count, optional_count);
        }
        for (size_t i = 0; i < PORT_COUNT_MAX; ++i) {
            rondo_tensor_deinit(&feeds[i].tensor);
        }
    }
    rondo_program_destroy(program);
    return 0;
}
