// ONNX's own backend tests allow |difference| <= 1e-7 + 1e-3 * |expected|, where a file data.json
// says nothing else, and 2^-6 * |expected| for bf16 (compare.c). That suits single ops. In a whole
// network thousands of products are summed in another order, and an output near zero keeps the
// rounding error of the large terms that cancelled; so networks (more than NETWORK_OPS ops, with
// those of bodies) may also differ by 1e-5 of the output's largest magnitude. In half precision a
// product carries eleven bits: an output may differ by 2e-2 of its norm, and a single element by
// 1e-1 of the output's largest magnitude. So it is with a network that is in half precision itself;
// with the eight bits of bf16 by four times as much.
//
// Source: onnx/backend/test, loader and runner of ONNX 1.23.
// SPDX-License-Identifier: Apache-2.0
#include "test_tolerance.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "file_bytes.h"
#include "json_reader.h"

enum { NETWORK_OPS = 16, ONNX_F16 = 10, ONNX_BF16 = 16 };

static const double onnx_relative = 1e-3;
static const double onnx_absolute = 1e-7;

// Visits the nodes of a program and of its bodies.
typedef struct node_facts {
    size_t body_op_count;
    rondo_dtype half;  // that a Cast makes; NONE: none does
} node_facts;

static void look_at_nodes(const rondo_program *program, node_facts *facts) {
    for (size_t n = 0; n < rondo_program_get_node_count(program); n++) {
        rondo_program_node node = {.struct_size = sizeof node};
        const bool is_there = rondo_program_get_node(program, n, &node) == RONDO_STATUS_OK;
        for (size_t i = 0; is_there && i < node.attribute_count; i++) {
            rondo_attribute attribute;
            if (rondo_program_get_node_attribute(program, n, i, &attribute) != RONDO_STATUS_OK) {
                continue;
            }
            if (attribute.kind == RONDO_ATTRIBUTE_GRAPH) {
                facts->body_op_count += rondo_program_get_node_count(attribute.program);
                look_at_nodes(attribute.program, facts);
            } else if (strcmp(node.op, "Cast") == 0 && strcmp(attribute.name, "to") == 0 &&
                       (attribute.int_value == ONNX_F16 || attribute.int_value == ONNX_BF16)) {
                facts->half = attribute.int_value == ONNX_F16 ? RONDO_DTYPE_F16 : RONDO_DTYPE_BF16;
            }
        }
    }
}

static bool is_half(rondo_dtype dtype) {
    return dtype == RONDO_DTYPE_F16 || dtype == RONDO_DTYPE_BF16;
}

// The half precision that the model itself has: of an input, an output, or a Cast.
static rondo_dtype find_half(const rondo_program *program, const node_facts *facts) {
    const size_t input_count = rondo_program_get_input_count(program);
    const size_t count = input_count + rondo_program_get_output_count(program);
    for (size_t i = 0; i < count; i++) {
        rondo_port port = {.struct_size = sizeof port};
        const rondo_status status = i < input_count
                                        ? rondo_program_get_input(program, i, &port)
                                        : rondo_program_get_output(program, i - input_count, &port);
        if (status == RONDO_STATUS_OK && is_half(port.dtype)) {
            return port.dtype;
        }
    }
    return facts->half;
}

// What data.json says; a file that is not there, or that is something else, says nothing.
static void read_data_file(const char *path, double *relative, double *absolute) {
    cli_bytes bytes;
    json_t *document = NULL;
    if (access(path, R_OK) != 0 || !cli_bytes_load(path, &bytes)) {
        return;
    }
    if (cli_json_parse((const char *)bytes.data, bytes.count, path, &document)) {
        (void)cli_json_find_number(document, "rtol", relative);
        (void)cli_json_find_number(document, "atol", absolute);
        json_decref(document);
    }
    cli_bytes_free(&bytes);
}

cli_tolerance cli_test_choose_tolerance(const rondo_program *program, uint64_t op_count,
                                        const cli_test_settings *settings, const char *data_path) {
    node_facts facts = {.half = RONDO_DTYPE_NONE};
    double relative = onnx_relative;
    double absolute = onnx_absolute;
    look_at_nodes(program, &facts);
    if (isnan(settings->relative) || isnan(settings->absolute)) {
        read_data_file(data_path, &relative, &absolute);
    }
    cli_tolerance tolerance = {
        .relative = isnan(settings->relative) ? relative : settings->relative,
        .absolute = isnan(settings->absolute) ? absolute : settings->absolute,
    };
    const bool is_network = op_count + facts.body_op_count > NETWORK_OPS;
    const rondo_dtype half = is_network ? find_half(program, &facts) : RONDO_DTYPE_NONE;
    if (settings->dtype == RONDO_DTYPE_F16 || half != RONDO_DTYPE_NONE) {
        const double times = half == RONDO_DTYPE_BF16 ? 4.0 : 1.0;
        tolerance.scale = times * CLI_HALF_SCALE;
        tolerance.norm = times * CLI_HALF_NORM;
    } else if (is_network) {
        tolerance.scale = 1e-5;
    }
    return tolerance;
}
