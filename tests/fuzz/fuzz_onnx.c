// What a hostile model file can reach: the importer, the checks, and shape inference and reference
// of every op in it, on tensors kept small. And what an altered plan file can: the reader.
//
// The run is a simple interpreter: it follows the program's order, takes constants and declared
// inputs (symbolic and unknown extents become 2) and drops what is too large or comes out unknown.
// Nothing here may crash, leak, or read what was never written; errors are fine.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "op/op.h"
#include "program/program.h"
#include "program/saved/saved_program.h"
#include "random_values.h"
#include "rondo/log.h"
#include "rondo/onnx.h"

enum {
    ELEMENT_COUNT_MAX = 1024,  // of each tensor that is computed
    NODE_COUNT_MAX = 64,       // that are looked at
    OPERAND_COUNT_MAX = 32,    // inputs or outputs of one node
    WORK_MAX = 1 << 18,        // product of all element counts of a node, roughly its work
};

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void drop_message(void *user_data, rondo_log_level level, const char *message) {
    (void)user_data;
    (void)level;
    (void)message;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    (void)argc;
    (void)argv;
    rondo_log_set_sink(drop_message, NULL);
    return 0;
}

// What the interpreter knows of a value; `tensor` is set when it has been computed.
typedef struct slot {
    rondo__tensor_info info;
    rondo_tensor tensor;
} slot;

static void fill_input(const rondo__value *value, slot *slot) {
    const bool is_tensor =
        value->dtype != RONDO_DTYPE_SEQUENCE && value->dtype != RONDO_DTYPE_OPTIONAL;
    if (value->dtype == RONDO_DTYPE_NONE || (is_tensor && !value->has_shape)) {
        return;
    }
    rondo_shape shape = {.rank = value->rank};
    for (int32_t i = 0; i < value->rank; ++i) {
        int64_t number = value->dims[i].number;
        shape.extent[i] = number < 0 ? 2 : number;
    }
    int64_t count = rondo_shape_get_count(&shape);
    if (count < 0) {
        return;  // fits only while its unknown extents are 1
    }
    slot->info =
        (rondo__tensor_info){.dtype = value->dtype, .is_shape_known = is_tensor, .shape = shape};
    if (count <= ELEMENT_COUNT_MAX &&
        fuzz_make_value(value->dtype, value->item_dtype, &shape, &slot->tensor)) {
        slot->info.is_shape_known = true;
        slot->info.shape = slot->tensor.shape;
    }
}

// Runs shape inference, then the reference when everything is small. Returns false on an error.
static bool run_node(const rondo__node *node, slot *slots) {
    rondo__tensor_info inputs[OPERAND_COUNT_MAX] = {0};
    rondo__tensor_info outputs[OPERAND_COUNT_MAX] = {0};
    const rondo_tensor *operands[OPERAND_COUNT_MAX] = {0};
    rondo_tensor results[OPERAND_COUNT_MAX] = {0};
    if (node->explicit_count > OPERAND_COUNT_MAX || node->output_count > OPERAND_COUNT_MAX) {
        return true;
    }
    bool has_all_inputs = true;
    uint64_t work = 1;
    for (size_t i = 0; i < node->explicit_count; ++i) {
        int32_t number = node->inputs[i];
        if (number < 0) {
            continue;
        }
        inputs[i] = slots[number].info;
        if (inputs[i].dtype == RONDO_DTYPE_NONE) {
            return true;  // an input of unknown type: nothing can be said
        }
        if (slots[number].tensor.dtype == RONDO_DTYPE_NONE) {
            has_all_inputs = false;
            continue;
        }
        operands[i] = &slots[number].tensor;
        inputs[i].constant = operands[i];
        uint64_t count = (uint64_t)rondo_shape_get_count(&slots[number].tensor.shape);
        work *= count == 0 || work > WORK_MAX ? 1 : count;
    }
    rondo__infer infer = {
        .op = &node->op,
        .input_count = node->explicit_count,
        .output_count = node->output_count,
        .inputs = inputs,
        .outputs = outputs,
    };
    if (rondo__op_infer(&infer) != RONDO_STATUS_OK) {
        return false;
    }
    bool is_small = work <= WORK_MAX;
    for (size_t i = 0; i < node->output_count; ++i) {
        if (!outputs[i].is_shape_known) {
            is_small = is_small && infer.is_data_dependent;
        } else if (rondo_shape_get_count(&outputs[i].shape) > ELEMENT_COUNT_MAX) {
            is_small = false;
        }
    }
    bool is_computed = false;
    if (has_all_inputs && is_small && node->op.def->compute != NULL) {
        rondo__compute compute = {
            .op = &node->op,
            .input_count = node->explicit_count,
            .output_count = node->output_count,
            .inputs = operands,
            .outputs = results,
        };
        is_computed = rondo__op_compute(&compute) == RONDO_STATUS_OK;
    }
    for (size_t i = 0; i < node->output_count; ++i) {
        int32_t number = node->outputs[i];
        if (number < 0) {
            rondo_tensor_deinit(&results[i]);
            continue;
        }
        slots[number].info = outputs[i];
        if (is_computed) {
            if (outputs[i].is_shape_known && results[i].dtype != RONDO_DTYPE_NONE &&
                !rondo_shape_is_equal(&outputs[i].shape, &results[i].shape)) {
                abort();  // inference and reference disagree
            }
            slots[number].tensor = results[i];
            slots[number].info.dtype = results[i].dtype;
            slots[number].info.is_shape_known = results[i].dtype != RONDO_DTYPE_NONE;
            slots[number].info.shape = results[i].shape;
        } else {
            rondo_tensor_deinit(&results[i]);
        }
    }
    return true;
}

static void run_program(const rondo_program *program) {
    slot *slots = calloc(program->value_count + 1, sizeof(*slots));
    if (slots == NULL) {
        return;
    }
    for (size_t i = 0; i < program->value_count; ++i) {
        const rondo__value *value = &program->values[i];
        if (value->constant.dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        rondo_tensor_share(&value->constant, &slots[i].tensor);
        slots[i].info = (rondo__tensor_info){
            .dtype = value->constant.dtype, .is_shape_known = true, .shape = value->constant.shape};
    }
    for (size_t i = 0; i < program->input_count; ++i) {
        fill_input(&program->values[program->inputs[i]], &slots[program->inputs[i]]);
    }
    for (size_t i = 0; i < program->node_count && i < NODE_COUNT_MAX; ++i) {
        const rondo__node *node = &program->nodes[i];
        if (!run_node(node, slots)) {
            break;
        }
        for (size_t j = 0; j < node->op.attribute_count; ++j) {
            if (node->op.attributes[j].kind == RONDO__ATTRIBUTE_BODY) {
                run_program(node->op.attributes[j].body);
            }
        }
    }
    for (size_t i = 0; i < program->value_count; ++i) {
        rondo_tensor_deinit(&slots[i].tensor);
    }
    free(slots);
}

// The bytes of all blocks as the data section of a plan file has them.
static uint8_t *gather_blocks(const rondo__data_blocks *blocks) {
    const size_t alignment = RONDO__DATA_ALIGNMENT;
    uint8_t *bytes = aligned_alloc(alignment, (blocks->byte_count / alignment + 1) * alignment);
    for (size_t i = 0; bytes != NULL && i < blocks->count; ++i) {
        memcpy(bytes + blocks->pieces[i].offset, blocks->pieces[i].bytes,
               blocks->pieces[i].byte_count);
    }
    return bytes;
}

// A plan file's record of the program can be read; altered, it is refused or another program.
static void read_records(const rondo_program *program, uint32_t random) {
    rondo__data_blocks blocks = {0};
    rondo__text text = {0};
    rondo_program *again = NULL;
    if (rondo__program_write(program, &blocks, &text) != RONDO_STATUS_OK) {
        abort();
    }
    uint8_t *bytes = gather_blocks(&blocks);
    const rondo__saved_data data = {.bytes = bytes, .byte_count = blocks.byte_count};
    for (int round = 0; round < 8 && bytes != NULL; ++round) {
        rondo__record record = {.at = (const uint8_t *)text.bytes,
                                .past = (const uint8_t *)text.bytes + text.length};
        const rondo_status status = rondo__program_read(&record, &data, &again);
        if (round == 0 && (status != RONDO_STATUS_OK || record.at != record.past)) {
            abort();
        }
        rondo_program_destroy(again);
        random = random * 1664525u + 1013904223u;
        text.bytes[random % text.length] = (char)(random >> 24);
    }
    free(bytes);
    rondo__text_deinit(&text);
    rondo__data_blocks_deinit(&blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    rondo_program *program = NULL;
    rondo_program *copy = NULL;
    if (rondo_program_parse_onnx(data, size, &program) != RONDO_STATUS_OK) {
        return 0;
    }
    if (rondo__program_clone(program, &copy) != RONDO_STATUS_OK) {
        abort();
    }
    read_records(program, (uint32_t)size + data[size / 2]);
    rondo_program_destroy(program);
    if (rondo__program_verify(copy) != RONDO_STATUS_OK) {
        abort();  // a verified program's clone is right
    }
    run_program(copy);
    if (rondo__program_remove_dead(copy) != RONDO_STATUS_OK ||
        rondo__program_verify(copy) != RONDO_STATUS_OK) {
        abort();
    }
    rondo_program_destroy(copy);
    return 0;
}
