// The op core: attributes, registry, inference, the reference runner, broadcasting, strided copies.
// SPDX-License-Identifier: Apache-2.0
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "op/broadcast.h"
#include "op/op.h"
#include "op/support.h"
#include "support/test.h"

static void make_op(const char *name, int32_t opset, rondo__op *out_op) {
    memset(out_op, 0, sizeof *out_op);
    out_op->def = rondo__op_lookup("", name, opset);
    assert_non_null(out_op->def);
    out_op->opset = opset;
    out_op->name = rondo__strdup("the_node");
    assert_non_null(out_op->name);
}

static void make_tensor(rondo_dtype dtype, rondo_shape shape, rondo_tensor *out_tensor) {
    assert_int_equal(rondo_tensor_init(dtype, &shape, out_tensor), RONDO_STATUS_OK);
}

static void assert_message_has(const char *part) {
    const char *message = rondo_error_get_last()->message;
    if (strstr(message, part) == NULL) {
        fail_msg("\"%s\" does not contain \"%s\"", message, part);
    }
}

// ---- attributes

static void set_all(rondo__op *op) {
    static const int64_t ints[] = {4, 5};
    rondo_tensor tensor;
    make_tensor(RONDO_DTYPE_F32, (rondo_shape){.rank = 1, .extent = {1}}, &tensor);
    ((float *)tensor.data)[0] = 7.0f;
    assert_int_equal(rondo__op_set_int(op, "i", 3), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_set_float(op, "f", 0.5f), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_set_string(op, "s", "edge"), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_set_ints(op, "ints", ints, 2), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_set_ints(op, "none", NULL, 0), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_set_tensor(op, "t", &tensor), RONDO_STATUS_OK);
    rondo_tensor_deinit(&tensor);
}

static void assert_has_all(const rondo__op *op) {
    size_t count = 0;
    assert_int_equal(rondo__op_get_int(op, "i", -1), 3);
    assert_true(rondo__op_get_float(op, "f", -1.0f) == 0.5f);
    assert_string_equal(rondo__op_get_string(op, "s", ""), "edge");
    const int64_t *ints = rondo__op_get_ints(op, "ints", &count);
    assert_int_equal(count, 2);
    assert_int_equal(ints[1], 5);
    assert_non_null(rondo__op_get_ints(op, "none", &count));
    assert_int_equal(count, 0);
    const rondo__attribute *tensor = rondo__op_find(op, "t");
    assert_non_null(tensor);
    assert_true(((const float *)tensor->tensor_value.data)[0] == 7.0f);
}

TEST(test_op_core__attributes_are_found_and_replaced) {
    rondo__op op;
    size_t count = 9;
    make_op("Relu", 13, &op);
    set_all(&op);
    assert_has_all(&op);
    assert_int_equal(op.attribute_count, 6);
    assert_int_equal(rondo__op_set_int(&op, "i", 8), RONDO_STATUS_OK);
    assert_int_equal(op.attribute_count, 6);
    assert_int_equal(rondo__op_get_int(&op, "i", -1), 8);
    // Another kind under the same name is as good as absent.
    assert_true(rondo__op_get_float(&op, "i", -1.0f) == -1.0f);
    assert_null(rondo__op_get_ints(&op, "i", &count));
    assert_int_equal(count, 0);
    assert_int_equal(rondo__op_get_int(&op, "absent", 42), 42);
    rondo__op_deinit(&op);
    rondo__op_deinit(&op);
}

typedef struct countdown {
    size_t left;
    int has_fired;
} countdown;

static bool fail_nth(void *user_data) {
    countdown *count = user_data;
    if (count->left == 0) {
        count->has_fired = 1;
        return true;
    }
    count->left--;
    return false;
}

TEST(test_op_core__copies_are_whole_or_nothing) {
    rondo__op op;
    make_op("Relu", 13, &op);
    set_all(&op);
    size_t n = 0;
    for (countdown count = {.has_fired = 1}; count.has_fired; n++) {
        rondo__op copy;
        count = (countdown){.left = n};
        rondo__memory_set_fault(fail_nth, &count);
        rondo_status status = rondo__op_copy(&op, &copy);
        rondo__memory_set_fault(NULL, NULL);
        if (count.has_fired) {
            assert_int_equal(status, RONDO_STATUS_NO_MEMORY);
            assert_null(copy.attributes);
            continue;
        }
        assert_int_equal(status, RONDO_STATUS_OK);
        assert_has_all(&copy);
        assert_string_equal(copy.name, "the_node");
        assert_ptr_not_equal(copy.name, op.name);
        rondo__op_deinit(&copy);
    }
    assert_true(n > 8);
    rondo__op_deinit(&op);
}

TEST(test_op_core__unknown_attributes_are_refused_by_name) {
    rondo__op op;
    make_op("Flatten", 13, &op);
    assert_int_equal(rondo__op_set_int(&op, "axis", 1), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_check(&op), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_set_int(&op, "wings", 1), RONDO_STATUS_OK);
    assert_int_equal(rondo__op_check(&op), RONDO_STATUS_UNSUPPORTED);
    assert_string_equal(rondo_error_get_last()->message,
                        "unsupported: op Flatten version 13 (attribute wings)");
    assert_string_equal(rondo_error_get_last()->op, "the_node");
    rondo__op_deinit(&op);
}

// ---- the registry

typedef struct census {
    size_t count;
    const rondo__op_def *defs[1024];
} census;

static void count_def(void *user_data, const rondo__op_def *def) {
    census *all = user_data;
    assert_true(all->count < 1024);
    all->defs[all->count++] = def;
}

TEST(test_op_core__every_entry_is_sound_and_found) {
    static census all;
    all.count = 0;
    rondo__op_visit(count_def, &all);
    size_t ids = 0;
    bool is_there[RONDO__OP_ID_COUNT] = {true};  // of the list in op_list.h
    for (size_t i = 0; i < all.count; i++) {
        const rondo__op_def *def = all.defs[i];
        ids += is_there[def->id] ? 0 : 1;
        is_there[def->id] = true;
        bool is_internal = (def->flags & RONDO__OP_INTERNAL) != 0;
        bool is_control = (def->flags & RONDO__OP_CONTROL) != 0;
        assert_true(def->opset_min <= def->opset_max && def->opset_max <= RONDO_OP_OPSET_MAX);
        assert_true(def->input_min <= def->input_max && def->output_min <= def->output_max);
        assert_true(is_control || (def->compute != NULL && def->infer != NULL));
        assert_true(is_internal == (strcmp(def->domain, "rondo") == 0));
        assert_ptr_equal(rondo__op_lookup(def->domain, def->name, def->opset_min), def);
        assert_ptr_equal(rondo__op_lookup(def->domain, def->name, def->opset_max), def);
        for (size_t k = i + 1; k < all.count; k++) {
            const rondo__op_def *other = all.defs[k];
            if (def->id != other->id) {
                continue;
            }
            if (def->opset_min <= other->opset_max && other->opset_min <= def->opset_max) {
                fail_msg("two entries are for %s", def->name);
            }
            if (def->strings != other->strings || def->nested != other->nested ||
                def->makes_strings != other->makes_strings || def->half.kind != other->half.kind ||
                def->wide_inputs != other->wide_inputs || def->weights != other->weights ||
                def->bound != other->bound) {
                fail_msg("two versions of %s differ in what they say of the op", def->name);
            }
        }
    }
    assert_int_equal(ids, RONDO__OP_ID_COUNT - 1);
}

TEST(test_op_core__lookup_knows_domains_and_opsets) {
    assert_ptr_equal(rondo__op_lookup("ai.onnx", "Relu", 13), rondo__op_lookup("", "Relu", 13));
    assert_null(rondo__op_lookup("ai.onnx.ml", "Relu", 13));
    assert_null(rondo__op_lookup("", "relu", 13));
    assert_null(rondo__op_lookup("", "Relu", 29));
    assert_null(rondo__op_lookup("", "Gelu", 19));
    assert_null(rondo__op_lookup("", "Conv", RONDO_OP_OPSET_MAX + 1));
    assert_ptr_not_equal(rondo__op_lookup("", "Slice", 9), rondo__op_lookup("", "Slice", 10));
    assert_non_null(rondo__op_lookup("rondo", "Conv", 1));
}

// ---- inference

TEST(test_op_core__inference_checks_what_all_ops_share) {
    rondo__op op;
    make_op("Reshape", 13, &op);
    rondo__tensor_info in[3] = {{0}};
    rondo__tensor_info out[2] = {{0}};
    rondo__infer infer = {
        .op = &op, .input_count = 2, .output_count = 1, .inputs = in, .outputs = out};
    assert_int_equal(rondo__op_infer(&infer), RONDO_STATUS_BAD_DATA);
    assert_message_has("input 0 is missing");
    in[0] = (rondo__tensor_info){
        .dtype = RONDO_DTYPE_F32, .is_shape_known = true, .shape = {.rank = 1, .extent = {6}}};
    in[1] = (rondo__tensor_info){
        .dtype = RONDO_DTYPE_I64, .is_shape_known = true, .shape = {.rank = 1, .extent = {2}}};
    assert_int_equal(rondo__op_infer(&infer), RONDO_STATUS_OK);
    assert_int_equal(infer.needed_inputs, 1u << 1);
    assert_false(out[0].is_shape_known);
    assert_int_equal(out[0].dtype, RONDO_DTYPE_F32);

    in[0].is_shape_known = false;
    assert_int_equal(rondo__op_infer(&infer), RONDO_STATUS_OK);
    assert_int_equal(infer.needed_inputs, 0);
    assert_int_equal(out[0].dtype, RONDO_DTYPE_NONE);

    in[0].is_shape_known = true;
    in[0].shape.extent[0] = -1;
    assert_int_equal(rondo__op_infer(&infer), RONDO_STATUS_BAD_DATA);
    assert_message_has("impossible shape");
    in[0].shape.extent[0] = 6;
    infer.input_count = 3;
    assert_int_equal(rondo__op_infer(&infer), RONDO_STATUS_BAD_DATA);
    assert_message_has("has 3 inputs, but takes at most 2");
    infer.input_count = 2;
    infer.output_count = 2;
    assert_int_equal(rondo__op_infer(&infer), RONDO_STATUS_BAD_DATA);
    assert_message_has("names 2 outputs");
    rondo__op_deinit(&op);
}

// ---- the reference runner

TEST(test_op_core__given_outputs_must_fit) {
    rondo__op op;
    rondo_tensor x;
    rondo_tensor y;
    make_op("Relu", 14, &op);
    make_tensor(RONDO_DTYPE_F32, (rondo_shape){.rank = 1, .extent = {2}}, &x);
    make_tensor(RONDO_DTYPE_F32, (rondo_shape){.rank = 1, .extent = {3}}, &y);
    const rondo_tensor *inputs[1] = {&x};
    rondo__compute compute = {
        .op = &op, .input_count = 1, .output_count = 1, .inputs = inputs, .outputs = &y};
    void *address = y.data;
    assert_int_equal(rondo__op_compute(&compute), RONDO_STATUS_BAD_DATA);
    assert_message_has("was planned as f32 [3], but is f32 [2]");
    // The caller's tensor stays the caller's.
    assert_ptr_equal(y.data, address);
    y.dtype = RONDO_DTYPE_I32;
    y.shape.extent[0] = 2;
    assert_int_equal(rondo__op_compute(&compute), RONDO_STATUS_BAD_DATA);
    y.dtype = RONDO_DTYPE_F32;
    assert_int_equal(rondo__op_compute(&compute), RONDO_STATUS_OK);
    assert_ptr_equal(y.data, address);
    rondo_tensor_deinit(&x);
    rondo_tensor_deinit(&y);
    rondo__op_deinit(&op);
}

TEST(test_op_core__half_goes_through_float) {
    rondo__op op;
    rondo_tensor x;
    rondo_tensor outputs[2] = {{0}};
    make_op("TopK", 11, &op);
    assert_int_equal(op.def->flags & RONDO__OP_NATIVE_HALF, RONDO__OP_NATIVE_HALF);
    rondo__op_deinit(&op);
    // ReduceMax calculates in f32; its result must be half again, in given memory too.
    make_op("ReduceMax", 13, &op);
    make_tensor(RONDO_DTYPE_F16, (rondo_shape){.rank = 1, .extent = {3}}, &x);
    ((uint16_t *)x.data)[1] = rondo_f16_from_float(2.5f);
    const rondo_tensor *inputs[1] = {&x};
    rondo__compute compute = {
        .op = &op, .input_count = 1, .output_count = 1, .inputs = inputs, .outputs = outputs};
    for (int run = 0; run < 2; run++) {
        assert_int_equal(rondo__op_compute(&compute), RONDO_STATUS_OK);
        assert_int_equal(outputs[0].dtype, RONDO_DTYPE_F16);
        assert_true(rondo_f16_to_float(*(uint16_t *)outputs[0].data) == 2.5f);
        *(uint16_t *)outputs[0].data = 0;
    }
    rondo_tensor_deinit(&outputs[0]);
    rondo_tensor_deinit(&x);
    rondo__op_deinit(&op);
}

// ---- broadcasting and strided copies

TEST(test_op_core__broadcast_walks_in_long_rows) {
    const rondo_shape result = {.rank = 4, .extent = {2, 3, 4, 5}};
    const rondo_shape channel = {.rank = 3, .extent = {3, 1, 1}};
    const rondo_shape *operands[2] = {&result, &channel};
    rondo__broadcast walk;
    rondo__broadcast_init(&walk, &result, operands, 2);
    assert_int_equal(walk.row_length, 20);
    assert_int_equal(walk.row_count, 6);
    assert_int_equal(walk.row_stride[0], 1);
    assert_int_equal(walk.row_stride[1], 0);
    for (int64_t row = 0; row < walk.row_count; row++) {
        assert_int_equal(walk.offset[0], row * 20);
        assert_int_equal(walk.offset[1], row % 3);
        rondo__broadcast_advance(&walk);
    }
    operands[1] = &result;
    rondo__broadcast_init(&walk, &result, operands, 2);
    assert_int_equal(walk.row_length, 120);
    const rondo_shape empty = {.rank = 2, .extent = {0, 3}};
    operands[0] = operands[1] = &empty;
    rondo__broadcast_init(&walk, &empty, operands, 2);
    assert_int_equal(walk.row_count * walk.row_length, 0);
}

TEST(test_op_core__strided_copies) {
    static const uint64_t wide[6] = {0, 1, 2, 3, 4, 5};
    for (size_t bytes = 1; bytes <= 8; bytes *= 2) {
        uint8_t source[48];
        uint8_t result[48];
        for (size_t i = 0; i < 6; i++) {
            memcpy(source + i * bytes, &wide[i], bytes);
        }
        // [3, 2] transposed and reversed along its rows: 4 2 0 5 3 1
        const int64_t extent[2] = {2, 3};
        const int64_t stride[2] = {1, -2};
        static const uint8_t expected[6] = {4, 2, 0, 5, 3, 1};
        rondo__copy_strided(bytes, 2, extent, stride, source + 4 * bytes, result);
        for (size_t i = 0; i < 6; i++) {
            assert_int_equal(result[i * bytes], expected[i]);
        }
        rondo__copy_strided(bytes, 0, NULL, NULL, source + bytes, result);
        assert_int_equal(result[0], 1);
    }
}

TEST_MAIN()
