// onnx/saved_variables.c — see saved_variables.h.
// SPDX-License-Identifier: Apache-2.0
#include "onnx/saved_variables.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"

// Numbers that are not whole are written by their bits, which no locale changes.
static uint64_t get_bits(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static double get_number(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

void rondo__variable_write_numbers(const rondo_start *start, char *buffer) {
    (void)snprintf(buffer, RONDO__VARIABLE_NUMBERS_MAX,
                   "%d %016" PRIx64 " %016" PRIx64 " %" PRIx64 " %" PRIx64 " %" PRIx64 " ",
                   (int)start->kind, get_bits(start->a), get_bits(start->b), start->seed,
                   start->fan_in, start->fan_out);
}

static rondo_status fail_entry(const char *name, const char *why) {
    return RONDO_FAIL(BAD_DATA, "the metadata of variable \"%.60s\": %s", name, why);
}

// The text behind the numbers; NULL: they cannot be read.
static const char *read_numbers(const char *text, rondo_start *out_start) {
    uint64_t a, b;
    int kind = 0;
    int length = 0;
    *out_start = (rondo_start){.struct_size = sizeof *out_start};
    const int count =
        sscanf(text, "%9d %16" SCNx64 " %16" SCNx64 " %16" SCNx64 " %16" SCNx64 " %16" SCNx64 "%n",
               &kind, &a, &b, &out_start->seed, &out_start->fan_in, &out_start->fan_out, &length);
    if (count != 6 || text[length] != ' ') {
        return NULL;
    }
    out_start->kind = kind;
    out_start->a = get_number(a);
    out_start->b = get_number(b);
    return text + length + 1;
}

static rondo_status read_entry(const char *name, const char *text, rondo_program *program) {
    rondo_start start;
    const char *update = read_numbers(text, &start);
    if (update == NULL) {
        return fail_entry(name, "it is not what Rondo writes");
    }
    const int32_t value = rondo__program_find_value(program, name);
    const int32_t output =
        update[0] != '\0' ? rondo__program_find_value(program, update) : RONDO__VALUE_NONE;
    if (value == RONDO__VALUE_NONE || (update[0] != '\0' && output == RONDO__VALUE_NONE)) {
        return fail_entry(name, "the graph has no such value");
    }
    return rondo__program_add_saved_variable(program, value, output, &start);
}

rondo_status rondo__variables_read(const Onnx__ModelProto *model, rondo_program *program) {
    static const char key[] = RONDO__VARIABLE_KEY;
    for (size_t i = 0; i < model->n_metadata_props; ++i) {
        const Onnx__StringStringEntryProto *entry = model->metadata_props[i];
        if (entry->key != NULL && entry->value != NULL &&
            strncmp(entry->key, key, sizeof key - 1) == 0) {
            RETURN_IF_ERROR(read_entry(entry->key + sizeof key - 1, entry->value, program));
        }
    }
    return RONDO_STATUS_OK;
}
