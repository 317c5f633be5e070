// Every op with nonsense: random counts, dtypes, shapes, values and attributes. An op may compute
// or refuse; it must not crash, hang, leak, or disagree with its own inference. The sanitizer
// builds make this sharp. The sequence is fixed; RONDO_TEST_ROUNDS makes it longer.
// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "op/op.h"
#include "op/support.h"
#include "program/program.h"
#include "rondo/onnx.h"
#include "support/test.h"
#include "tensor/elements.h"

// Some requests for memory are absurd; the sanitizers too must answer them with NULL.
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1";
}

enum { ROUNDS = 400, SPOILT_ROUNDS = 10, INPUT_MAX = 9, OUTPUT_MAX = 4 };

static uint64_t random_state = 1;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static size_t pick(size_t count) {
    return (size_t)(next_random() >> 11) % count;
}

// Mostly small, sometimes as bad as can be. Nothing in between, so that no honest request for
// gigabytes is made.
static int64_t pick_int(void) {
    static const int64_t bad[] = {INT64_MIN,        INT64_MAX, INT64_MIN + 1,
                                  INT64_C(1) << 62, -100,      -(INT64_C(1) << 62)};
    return pick(12) == 0 ? bad[pick(6)] : (int64_t)pick(8) - 2;
}

static double pick_real(void) {
    static const double bad[] = {
        (double)NAN, (double)INFINITY, -(double)INFINITY, 1e30, -1e30, 1e-30, -0.0};
    return pick(10) == 0 ? bad[pick(7)] : (double)pick(64) / 8.0 - 3.0;
}

static rondo_dtype pick_dtype(void) {
    static const rondo_dtype usual[] = {RONDO_DTYPE_F32, RONDO_DTYPE_F32,  RONDO_DTYPE_I64,
                                        RONDO_DTYPE_I64, RONDO_DTYPE_BOOL, RONDO_DTYPE_F16};
    return pick(4) == 0 ? (rondo_dtype)(1 + pick(RONDO_DTYPE_COUNT - 1)) : usual[pick(6)];
}

// Strings, or a sequence or optional of a few small tensors.
static void make_object(rondo_dtype dtype, const rondo_shape *shape, rondo_tensor *out_tensor) {
    static const char *const words[] = {"", "a", "1.5", "-3", "NaN", "a b", "\xc3\xa4\xff", "x,y"};
    rondo_string strings[1024];
    rondo_tensor items[3] = {{0}};
    int64_t count = rondo_shape_get_count(shape);
    const rondo_shape small = {.rank = 1, .extent = {4}};
    if (count > 1024) {
        shape = &small;
        count = 4;
    }
    if (dtype == RONDO_DTYPE_STRING) {
        for (int64_t i = 0; i < count; i++) {
            strings[i] = rondo__string_from_text(words[pick(8)]);
        }
        assert_int_equal(rondo_tensor_init_strings(shape, strings, out_tensor), RONDO_STATUS_OK);
        return;
    }
    rondo_dtype item_dtype = pick(3) == 0 ? RONDO_DTYPE_STRING : RONDO_DTYPE_F32;
    size_t item_count = pick(4);
    for (size_t i = 0; i < item_count; i++) {
        rondo_shape item = *shape;
        if (pick(3) == 0) {
            item = (rondo_shape){.rank = 1, .extent = {(int64_t)pick(3)}};
        }
        assert_int_equal(rondo_tensor_init(item_dtype, &item, &items[i]), RONDO_STATUS_OK);
    }
    assert_int_equal(dtype == RONDO_DTYPE_SEQUENCE
                         ? rondo_tensor_init_sequence(items, item_count, out_tensor)
                         : rondo_tensor_init_optional(item_count > 0 ? items : NULL, out_tensor),
                     RONDO_STATUS_OK);
    for (size_t i = 0; i < item_count; i++) {
        rondo_tensor_deinit(&items[i]);
    }
}

// `first` is a shape that later inputs often share, so that ops get past their checks.
static void make_input(const rondo_tensor *first, rondo_tensor *out_tensor) {
    rondo_dtype dtype = pick_dtype();
    rondo_shape shape = {.rank = (int32_t)pick(5)};
    for (int32_t d = 0; d < shape.rank; d++) {
        shape.extent[d] = pick(12) == 0 ? 0 : (int64_t)pick(4) + 1;
    }
    if (first != NULL && pick(2) == 0) {
        dtype = first->dtype;
    }
    switch (first != NULL ? pick(6) : 6) {
        case 0:
        case 1:
            shape = first->shape;
            break;
        case 2:
            shape = (rondo_shape){.rank = 1, .extent = {(int64_t)pick(4)}};
            break;
        case 3:
            shape = (rondo_shape){.rank = 1, .extent = {first->shape.rank}};
            dtype = RONDO_DTYPE_I64;
            break;
        case 4:
            shape = (rondo_shape){.rank = 1, .extent = {first->shape.extent[pick(2)]}};
            break;
        default:
            break;
    }
    if (!rondo__dtype_is_plain(dtype)) {
        make_object(dtype, &shape, out_tensor);
        return;
    }
    assert_int_equal(rondo_tensor_init(dtype, &shape, out_tensor), RONDO_STATUS_OK);
    int64_t count = rondo_shape_get_count(&shape);
    size_t bytes = rondo_dtype_get_bytes(dtype);
    // Wrapped to 16 or 32 bits, bad values would turn into honest large ones.
    bool are_small = pick(2) == 0 || bytes == 2 || bytes == 4;
    for (int64_t i = 0; i < count; i++) {
        char *at = (char *)out_tensor->data + (size_t)i * bytes;
        if (rondo__dtype_is_float(dtype)) {
            double value = pick_real();
            rondo__convert_elements(RONDO_DTYPE_F64, &value, dtype, at, 1);
        } else {
            int64_t value = are_small ? (int64_t)pick(3) : pick_int();
            rondo__convert_elements(RONDO_DTYPE_I64, &value, dtype, at, 1);
        }
    }
}

// What an attribute of this name usually is: 's'tring, 'l'ist of integers, or 'i'nteger or float.
static char guess_kind(const char *name) {
    static const char *const lists[] = {
        "axes", "ends", "dilations", "kernel_shape", "output_padding", "output_shape",
        "pads", "perm", "split",     "starts",       "strides"};
    static const char *const strings[] = {"auto_pad",     "direction", "equation",     "mode",
                                          "padding_mode", "reduction", "interpolation"};
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        if (strcmp(name, lists[i]) == 0) {
            return 'l';
        }
    }
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++) {
        if (strcmp(name, strings[i]) == 0) {
            return 's';
        }
    }
    return 'i';
}

static void add_attribute(rondo__op *op, const char *name) {
    static const char *const words[] = {
        "",        "constant",      "reflect",       "edge",       "wrap",  "linear", "nearest",
        "cubic",   "add",           "NOTSET",        "SAME_UPPER", "VALID", "TF",     "forward",
        "reverse", "bidirectional", "mean",          "sum",        "none",  "LEFT",   "DCR",
        "CRD",     "zeros",         "border",        "asymmetric", "floor", "tanh",   "ij,jk->ik",
        "...i->i", "bilinear",      "align_corners", "half_pixel"};
    rondo_status status = RONDO_STATUS_OK;
    int64_t ints[6];
    rondo__attribute attribute = {.kind = RONDO__ATTRIBUTE_FLOATS};
    rondo_tensor tensor = {0};
    for (size_t i = 0; i < 6; i++) {
        ints[i] = pick(3) == 0 ? pick_int() : (int64_t)pick(3);
    }
    size_t choice = pick(6);
    if (pick(4) != 0) {
        char kind = guess_kind(name);
        choice = kind == 's' ? 4 : kind == 'l' ? 2 : 3 * pick(2);
    }
    switch (choice) {
        case 0:
        case 1:
            status = rondo__op_set_int(op, name, ints[0]);
            break;
        case 2:
            for (size_t i = 0; i < 6 && pick(2) == 0; i++) {
                ints[i] = 1 + (int64_t)pick(2);
            }
            status = rondo__op_set_ints(op, name, ints, pick(2) == 0 ? 2 : pick(7));
            break;
        case 3:
            status = rondo__op_set_float(op, name, (float)pick_real());
            break;
        case 4:
            status = rondo__op_set_string(op, name, words[pick(sizeof words / sizeof words[0])]);
            break;
        default:
            if (pick(2) == 0) {
                make_input(NULL, &tensor);
                status = rondo__op_set_tensor(op, name, &tensor);
                rondo_tensor_deinit(&tensor);
                break;
            }
            attribute.name = rondo__strdup(name);
            attribute.count = pick(4);
            attribute.floats = rondo__calloc(attribute.count, sizeof(float));
            for (size_t i = 0; i < attribute.count; i++) {
                attribute.floats[i] = (float)pick_real();
            }
            status = rondo__op_take_attribute(op, &attribute);
            break;
    }
    assert_int_equal(status, RONDO_STATUS_OK);
}

static void check_outputs(const rondo__op *op, const rondo__tensor_info *infos,
                          const rondo_tensor *outputs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        // Of what comes out of a sequence nothing is known ahead.
        if (outputs[i].dtype == RONDO_DTYPE_NONE || infos[i].dtype == RONDO_DTYPE_NONE) {
            continue;
        }
        bool fits =
            infos[i].dtype == outputs[i].dtype &&
            (!infos[i].is_shape_known || rondo_shape_is_equal(&infos[i].shape, &outputs[i].shape));
        if (!fits) {
            char a[96];
            char b[96];
            fail_msg("%s: output %zu is inferred as %s %s, is %s %s", op->def->name, i,
                     rondo_dtype_get_name(infos[i].dtype),
                     rondo_shape_format(&infos[i].shape, a, sizeof a),
                     rondo_dtype_get_name(outputs[i].dtype),
                     rondo_shape_format(&outputs[i].shape, b, sizeof b));
        }
    }
}

// Returns whether the op computed.
static bool try_once(const rondo__op_def *def) {
    rondo__op op = {.def = def};
    rondo_tensor tensors[INPUT_MAX] = {{0}};
    const rondo_tensor *inputs[INPUT_MAX] = {NULL};
    rondo_tensor outputs[OUTPUT_MAX] = {{0}};
    rondo__tensor_info in[INPUT_MAX] = {{0}};
    rondo__tensor_info out[OUTPUT_MAX] = {{0}};
    int32_t lowest = def->opset_min;
    op.opset = lowest + (int32_t)pick((size_t)(def->opset_max - lowest + 1));
    op.name = rondo__strdup("hostile");
    for (size_t i = 0; def->attributes != NULL && def->attributes[i] != NULL; i++) {
        if (pick(2) == 0) {
            add_attribute(&op, def->attributes[i]);
        }
    }
    size_t input_max = def->input_max < INPUT_MAX ? def->input_max : INPUT_MAX;
    size_t input_count = def->input_min + pick(input_max - def->input_min + 1);
    size_t output_max = def->output_max < OUTPUT_MAX ? def->output_max : OUTPUT_MAX;
    size_t output_count = def->output_min + pick(output_max - def->output_min + 1);
    for (size_t i = 0; i < input_count; i++) {
        if (i >= def->input_min && pick(6) == 0) {
            continue;
        }
        make_input(i > 0 && inputs[0] != NULL ? inputs[0] : NULL, &tensors[i]);
        inputs[i] = &tensors[i];
        in[i] = (rondo__tensor_info){.dtype = tensors[i].dtype,
                                     .is_shape_known = !rondo__dtype_is_nested(tensors[i].dtype),
                                     .shape = tensors[i].shape};
    }
    rondo__infer infer = {.op = &op,
                          .input_count = input_count,
                          .output_count = output_count,
                          .inputs = in,
                          .outputs = out};
    rondo__compute compute = {.op = &op,
                              .input_count = input_count,
                              .output_count = output_count,
                              .inputs = inputs,
                              .outputs = outputs};
    // `compute` may count on `check` having passed: the importer calls it for every node.
    bool has_computed = false;
    if (rondo__op_check(&op) == RONDO_STATUS_OK) {
        rondo_status inferred = rondo__op_infer(&infer);
        rondo_status computed = rondo__op_compute(&compute);
        has_computed = computed == RONDO_STATUS_OK;
        if (has_computed && inferred != RONDO_STATUS_OK) {
            fail_msg("%s computes what its inference refuses", def->name);
        }
        if (has_computed) {
            check_outputs(&op, out, outputs, output_count);
        } else if (computed == RONDO_STATUS_INTERNAL) {
            fail_msg("%s: %s", def->name, rondo_error_get_last()->message);
        }
    }
    for (size_t i = 0; i < INPUT_MAX; i++) {
        rondo_tensor_deinit(&tensors[i]);
    }
    for (size_t i = 0; i < OUTPUT_MAX; i++) {
        assert_true(has_computed || outputs[i].dtype == RONDO_DTYPE_NONE);
        rondo_tensor_deinit(&outputs[i]);
    }
    rondo__op_deinit(&op);
    return has_computed;
}

typedef struct totals {
    size_t ops;
    size_t computed;
    size_t tried;
} totals;

static void try_def(void *user_data, const rondo__op_def *def) {
    totals *all = user_data;
    const char *text = getenv("RONDO_TEST_ROUNDS");
    const char *only = getenv("RONDO_TEST_OP");
    size_t rounds = text != NULL ? strtoul(text, NULL, 10) : ROUNDS;
    // Internal ops never come from a file; passes build them right.
    if ((def->flags & (RONDO__OP_CONTROL | RONDO__OP_INTERNAL)) != 0 ||
        (only != NULL && strcmp(only, def->name) != 0)) {
        return;
    }
    size_t before = all->computed;
    all->ops++;
    for (size_t i = 0; i < rounds; i++) {
        all->computed += try_once(def) ? 1 : 0;
        all->tried++;
    }
    if (only != NULL) {
        printf("%s: %zu of %zu computed\n", def->name, all->computed - before, rounds);
    }
}

TEST(test_op_hostile__no_op_falls) {
    totals all = {0};
    rondo__op_visit(try_def, &all);
    printf("%zu ops, %zu of %zu tries computed\n", all.ops, all.computed, all.tried);
    assert_true(all.ops > 0);  // of RONDO_TEST_OP: there is such an op, which may refuse all tries
    assert_true(all.computed > 0 || getenv("RONDO_TEST_OP") != NULL);
}

// ---- valid cases, spoilt

// Replaces a tensor by one with another shape or dtype, or spoils one whole number in it.
static void spoil_tensor(rondo_tensor *tensor) {
    if (pick(2) == 0 && rondo__dtype_is_plain(tensor->dtype) &&
        !rondo__dtype_is_float(tensor->dtype) && rondo_shape_get_count(&tensor->shape) > 0) {
        int64_t at = (int64_t)pick((size_t)rondo_shape_get_count(&tensor->shape));
        bool is_large = rondo_dtype_get_bytes(tensor->dtype) == 8;
        int64_t value = is_large ? pick_int() : (int64_t)pick(8) - 2;
        size_t bytes = rondo_dtype_get_bytes(tensor->dtype);
        rondo__convert_elements(RONDO_DTYPE_I64, &value, tensor->dtype,
                                (char *)tensor->data + (size_t)at * bytes, 1);
        return;
    }
    rondo_shape shape = tensor->shape;
    rondo_dtype dtype = tensor->dtype;
    size_t choice = pick(4);
    if (choice == 0) {
        dtype = pick_dtype();
    } else if (choice == 1 && shape.rank > 0) {
        shape.extent[--shape.rank] = 0;
    } else if (choice == 2 && shape.rank < RONDO_RANK_MAX) {
        shape.extent[shape.rank++] = 1;
    } else if (shape.rank > 0) {
        int32_t d = (int32_t)pick((size_t)shape.rank);
        shape.extent[d] = pick(3) == 0 ? 0 : shape.extent[d] + (int64_t)pick(3) - 1;
        shape.extent[d] = shape.extent[d] < 0 ? 0 : shape.extent[d];
    }
    rondo_tensor spoilt;
    if (!rondo__dtype_is_plain(dtype) || !rondo__dtype_is_plain(tensor->dtype)) {
        make_object(rondo__dtype_is_plain(dtype) ? tensor->dtype : dtype, &shape, &spoilt);
        rondo_tensor_deinit(tensor);
        *tensor = spoilt;
        return;
    }
    assert_int_equal(rondo_tensor_init(dtype, &shape, &spoilt), RONDO_STATUS_OK);
    int64_t count = rondo_shape_get_count(&shape);
    int64_t had = rondo_shape_get_count(&tensor->shape);
    for (int64_t i = 0; i < count && had > 0; i++) {
        rondo__convert_elements(
            tensor->dtype,
            (const char *)tensor->data + (size_t)(i % had) * rondo_dtype_get_bytes(tensor->dtype),
            dtype, (char *)spoilt.data + (size_t)i * rondo_dtype_get_bytes(dtype), 1);
    }
    rondo_tensor_deinit(tensor);
    *tensor = spoilt;
}

static void spoil_attribute(rondo__op *op) {
    rondo__attribute *attribute = &op->attributes[pick(op->attribute_count)];
    if (attribute->kind == RONDO__ATTRIBUTE_INT) {
        attribute->int_value = pick_int();
    } else if (attribute->kind == RONDO__ATTRIBUTE_INTS && attribute->count > 0) {
        if (pick(3) == 0) {
            attribute->count--;
        } else {
            attribute->ints[pick(attribute->count)] = pick_int();
        }
    } else if (attribute->kind == RONDO__ATTRIBUTE_FLOAT) {
        attribute->float_value = (float)pick_real();
    } else if (attribute->kind == RONDO__ATTRIBUTE_TENSOR) {
        spoil_tensor(&attribute->tensor_value);
    }
}

static void run_spoilt(const rondo__node *node, const rondo_tensor *values) {
    rondo__op op;
    rondo_tensor tensors[INPUT_MAX] = {{0}};
    const rondo_tensor *inputs[INPUT_MAX] = {NULL};
    rondo_tensor outputs[OUTPUT_MAX] = {{0}};
    assert_int_equal(rondo__op_copy(&node->op, &op), RONDO_STATUS_OK);
    for (size_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == RONDO__VALUE_NONE || values[node->inputs[i]].dtype == 0) {
            continue;
        }
        // A copy of the bytes, since some are spoilt in place.
        const rondo_tensor *value = &values[node->inputs[i]];
        assert_int_equal(rondo_tensor_init(value->dtype, &value->shape, &tensors[i]),
                         RONDO_STATUS_OK);
        memcpy(tensors[i].data, value->data, rondo_tensor_get_bytes(value));
        inputs[i] = &tensors[i];
    }
    for (size_t spoils = 1 + pick(2); spoils > 0; spoils--) {
        size_t i = pick(node->input_count + 1);
        if (i < node->input_count && inputs[i] != NULL) {
            spoil_tensor(&tensors[i]);
        } else if (op.attribute_count > 0) {
            spoil_attribute(&op);
        }
    }
    rondo__compute compute = {.op = &op,
                              .input_count = node->input_count,
                              .output_count = node->output_count,
                              .inputs = inputs,
                              .outputs = outputs};
    rondo_status status = rondo__op_check(&op);
    if (status == RONDO_STATUS_OK && rondo__op_compute(&compute) == RONDO_STATUS_INTERNAL) {
        fail_msg("%s: %s", op.def->name, rondo_error_get_last()->message);
    }
    for (size_t i = 0; i < INPUT_MAX; i++) {
        rondo_tensor_deinit(&tensors[i]);
    }
    for (size_t i = 0; i < OUTPUT_MAX; i++) {
        rondo_tensor_deinit(&outputs[i]);
    }
    rondo__op_deinit(&op);
}

// Spoils the first node of a test directory's model in many ways.
static size_t spoil_directory(const char *directory, size_t rounds) {
    char path[512];
    rondo_program *program = NULL;
    snprintf(path, sizeof path, "%s/model.onnx", directory);
    if (rondo_program_load_onnx(path, &program) != RONDO_STATUS_OK) {
        return 0;
    }
    const rondo__node *node = program->nodes;
    size_t tries = 0;
    rondo_tensor *values = calloc(program->value_count + 1, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < program->value_count; i++) {
        if (program->values[i].constant.dtype != RONDO_DTYPE_NONE) {
            rondo_tensor_share(&program->values[i].constant, &values[i]);
        }
    }
    for (size_t i = 0; i < program->declared_count; i++) {
        snprintf(path, sizeof path, "%s/test_data_set_0/input_%zu.pb", directory, i);
        if (rondo_tensor_load_onnx(path, &values[program->inputs[i]]) != RONDO_STATUS_OK) {
            continue;
        }
    }
    bool is_usable = program->node_count > 0 && node->op.def->compute != NULL &&
                     node->input_count <= INPUT_MAX && node->output_count <= OUTPUT_MAX;
    for (; is_usable && tries < rounds; tries++) {
        run_spoilt(node, values);
    }
    for (size_t i = 0; i < program->value_count; i++) {
        rondo_tensor_deinit(&values[i]);
    }
    free(values);
    rondo_program_destroy(program);
    return tries;
}

#define NODES "/usr/share/libonnx-testdata/data/node"

TEST(test_op_hostile__spoilt_cases) {
    struct dirent **entries = NULL;
    const char *text = getenv("RONDO_TEST_ROUNDS");
    size_t rounds = text != NULL ? strtoul(text, NULL, 10) : SPOILT_ROUNDS;
    size_t tries = 0;
    int entry_count = scandir(NODES, &entries, NULL, alphasort);
    if (entry_count < 0) {
        printf("skipped: " NODES " is not there (Debian and Ubuntu: libonnx-testdata)\n");
        skip();
    }
    for (int i = 0; i < entry_count; i++) {
        if (strncmp(entries[i]->d_name, "test_", 5) == 0) {
            char path[400];
            snprintf(path, sizeof path, NODES "/%s", entries[i]->d_name);
            tries += spoil_directory(path, rounds);
        }
        free(entries[i]);
    }
    free(entries);
    printf("%zu spoilt cases\n", tries);
    assert_true(tries > 0);
}

TEST_MAIN()
