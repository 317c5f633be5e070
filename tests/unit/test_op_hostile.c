// Every op with attributes and inputs that no honest model has: nothing may crash, hang, read outside
// its inputs (the sanitizer builds see that) or blame the library. What is refused must say why.
//
// The seeds are ONNX's own operator tests: each node is run again and again with one to three things
// about it changed, so that most of it stays sound and the deep checks are reached, too.
//
// usage: test_op_hostile [ROUNDS [PART-OF-NAME]]
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/memory.h"
#include "op/op.h"
#include "op/support.h"
#include "support/node_runner.h"

#define NODES "/usr/share/libonnx-testdata/data/node"

enum { INPUT_MAX = 16, OUTPUT_MAX = 16 };

// Mutants ask for absurd sizes. What the machine could just about give is refused here, so that the
// test needs little memory wherever it runs: by a limit on addresses, or (the sanitizer reserves
// more than any limit) on the size of one allocation.
#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#endif

#ifdef HAS_SANITIZER
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
#endif

static void limit_memory(void) {
#ifndef HAS_SANITIZER
    const struct rlimit limit = {.rlim_cur = (rlim_t)4 << 30, .rlim_max = (rlim_t)4 << 30};
    assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
#endif
}

typedef struct hostile_totals {
    uint32_t round_count;  // for each node
    uint64_t run_count;
    uint64_t refused_count;
    const char *directory;
} hostile_totals;

static uint64_t random_state;

static uint32_t draw(uint32_t count) {
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(random_state >> 33) % count;
}

static int64_t draw_int(void) {
    // Between what fits and what no machine has there is nothing: that would only fill the memory.
    static const int64_t extremes[] = {INT64_MIN,        INT64_MAX,        INT64_MIN + 1,
                                       INT32_MIN,        -1000000,         -7,
                                       INT64_C(1) << 40, INT64_C(1) << 62, INT64_MAX / 2 + 1};
    return draw(3) > 0 ? (int64_t)draw(9) - 3
                       : extremes[draw(sizeof extremes / sizeof extremes[0])];
}

static double draw_number(void) {
    static const double extremes[] = {0.0,   -1.0, 1e30, -1e30, __builtin_inf(), __builtin_nan(""),
                                      1e300, 0.5,  255.0};
    return draw(3) > 0 ? (double)draw_int() : extremes[draw(sizeof extremes / sizeof extremes[0])];
}

// Words that some op knows.
static const char *draw_word(void) {
    static const char *const words[] = {
        "",
        "linear",
        "nearest",
        "cubic",
        "bilinear",
        "bicubic",
        "zeros",
        "border",
        "avg",
        "max",
        "floor",
        "reflection",
        "half_pixel",
        "ceil",
        "edge",
        "reflect",
        "wrap",
        "none",
        "sum",
        "mean",
        "SAME_UPPER",
        "VALID",
        "forward",
        "reverse",
        "Tanh",
        "Relu",
        "DCR",
        "bidirectional",
        "LEFT",
        "RIGHT",
        "ij,jk->ik",
        "ii->i",
        "...i->i",
        "->",
        "asymmetric",
        "TF",
        "TFIDF",
        "constant",
        "stretch",
        "nesterov",
        "not_larger",
        "align_corners",
        "tf_crop_and_resize",
    };
    return words[draw(sizeof words / sizeof words[0])];
}

// ---- mutations ----------------------------------------------------------------------------------

typedef struct mutant_node {
    rondo__op op;
    size_t input_count;
    size_t output_count;
    rondo_tensor inputs[INPUT_MAX];  // dtype NONE: absent
} mutant_node;

static void mutate_attribute(rondo__attribute *attribute) {
    switch (attribute->kind) {
        case RONDO__ATTRIBUTE_INT:
            attribute->int_value = draw_int();
            break;
        case RONDO__ATTRIBUTE_FLOAT:
            attribute->float_value = (float)draw_number();
            break;
        case RONDO__ATTRIBUTE_STRING:
            rondo__free(attribute->string_value);
            attribute->string_value = rondo__strdup(draw_word());
            break;
        case RONDO__ATTRIBUTE_INTS:
            if (attribute->count > 0 && draw(4) == 0) {
                attribute->count--;
            } else if (attribute->count > 0) {
                attribute->ints[draw((uint32_t)attribute->count)] = draw_int();
            }
            break;
        case RONDO__ATTRIBUTE_FLOATS:
            if (attribute->count > 0 && draw(4) == 0) {
                attribute->count--;
            } else if (attribute->count > 0) {
                attribute->floats[draw((uint32_t)attribute->count)] = (float)draw_number();
            }
            break;
        case RONDO__ATTRIBUTE_STRINGS:
            if (attribute->count > 0) {
                const size_t i = draw((uint32_t)attribute->count);
                rondo__free(attribute->strings[i]);
                attribute->strings[i] = rondo__strdup(draw_word());
            }
            break;
        case RONDO__ATTRIBUTE_TENSOR:
        case RONDO__ATTRIBUTE_BODY:
            break;
    }
}

// An attribute that the node left to its default.
static void add_attribute(rondo__op *op) {
    size_t known = 0;
    while (op->def->attributes != NULL && op->def->attributes[known] != NULL) {
        known++;
    }
    if (known == 0) {
        return;
    }
    const char *name = op->def->attributes[draw((uint32_t)known)];
    rondo_status status = RONDO_STATUS_OK;
    switch (draw(4)) {
        case 0:
            status = rondo__op_set_int(op, name, draw_int());
            break;
        case 1:
            status = rondo__op_set_float(op, name, (float)draw_number());
            break;
        case 2:
            status = rondo__op_set_string(op, name, draw_word());
            break;
        default: {
            int64_t values[8];
            for (int i = 0; i < 8; i++) {
                values[i] = draw_int();
            }
            status = rondo__op_set_ints(op, name, values, draw(9));
        }
    }
    assert_int_equal(status, RONDO_STATUS_OK);
}

// The same elements, repeated or cut, as another tensor.
static void remake(rondo_tensor *tensor, rondo_dtype dtype, const rondo_shape *shape) {
    rondo_tensor made;
    assert_int_equal(rondo_tensor_init(dtype, shape, &made), RONDO_STATUS_OK);
    const int64_t old_count = rondo_shape_get_count(&tensor->shape);
    const size_t old_bytes = rondo_dtype_get_bytes(tensor->dtype);
    const size_t new_bytes = rondo_dtype_get_bytes(dtype);
    for (int64_t i = 0; i < rondo_shape_get_count(shape) && old_count > 0; i++) {
        rondo__convert_elements(tensor->dtype,
                                (const char *)tensor->data + (size_t)(i % old_count) * old_bytes,
                                dtype, (char *)made.data + (size_t)i * new_bytes, 1);
    }
    rondo_tensor_deinit(tensor);
    *tensor = made;
}

static void mutate_shape(rondo_tensor *tensor) {
    rondo_shape shape = tensor->shape;
    const uint32_t kind = draw(4);
    if (kind == 0 && shape.rank > 0) {
        shape.extent[--shape.rank] = 0;
    } else if (kind == 1 && shape.rank < RONDO_RANK_MAX) {
        shape.extent[shape.rank++] = 1 + (int64_t)draw(2);
    } else if (shape.rank > 0) {
        const uint32_t axis = draw((uint32_t)shape.rank);
        const int64_t change = (int64_t)draw(3) - 1;
        shape.extent[axis] = draw(4) == 0 ? 0 : shape.extent[axis] + change;
        shape.extent[axis] = shape.extent[axis] < 0 ? 0 : shape.extent[axis];
    }
    const int64_t count = rondo_shape_get_count(&shape);
    if (count >= 0 && count < 100000) {
        remake(tensor, tensor->dtype, &shape);
    }
}

static void mutate_element(rondo_tensor *tensor) {
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    if (count == 0) {
        return;
    }
    const size_t at = draw(count < 1000 ? (uint32_t)count : 1000);
    char *place = (char *)tensor->data + at * rondo_dtype_get_bytes(tensor->dtype);
    if (rondo__dtype_is_float(tensor->dtype)) {
        const double value = draw_number();
        rondo__convert_elements(RONDO_DTYPE_F64, &value, tensor->dtype, place, 1);
    } else {
        const int64_t value = draw_int();
        rondo__convert_elements(RONDO_DTYPE_I64, &value, tensor->dtype, place, 1);
    }
}

static void mutate_input(mutant_node *mutant) {
    if (mutant->input_count == 0) {
        return;
    }
    rondo_tensor *tensor = &mutant->inputs[draw((uint32_t)mutant->input_count)];
    const uint32_t kind = draw(10);
    if (tensor->dtype == RONDO_DTYPE_NONE) {
        return;
    }
    if (kind < 4) {
        mutate_element(tensor);
    } else if (kind < 8) {
        mutate_shape(tensor);
    } else if (kind == 8) {
        const rondo_shape shape = tensor->shape;
        remake(tensor, (rondo_dtype)(1 + draw(RONDO_DTYPE_COUNT - 1)), &shape);
    } else {
        rondo_tensor_deinit(tensor);
    }
}

static void mutate(mutant_node *mutant) {
    rondo__op *op = &mutant->op;
    const uint32_t kind = draw(10);
    if (kind < 4 && op->attribute_count > 0) {
        mutate_attribute(&op->attributes[draw((uint32_t)op->attribute_count)]);
    } else if (kind < 5) {
        add_attribute(op);
    } else if (kind < 9) {
        mutate_input(mutant);
    } else if (draw(2) == 0 && mutant->input_count > 0) {
        rondo_tensor_deinit(&mutant->inputs[--mutant->input_count]);
    } else {
        mutant->output_count = 1 + draw(5);
    }
}

// ---- runs ---------------------------------------------------------------------------------------

static void run_mutant(hostile_totals *totals, mutant_node *mutant) {
    const rondo_tensor *pointers[INPUT_MAX];
    rondo_tensor outputs[OUTPUT_MAX] = {{0}};
    for (size_t i = 0; i < mutant->input_count; i++) {
        pointers[i] = mutant->inputs[i].dtype == RONDO_DTYPE_NONE ? NULL : &mutant->inputs[i];
    }
    rondo__compute compute = {
        .op = &mutant->op,
        .input_count = mutant->input_count,
        .output_count = mutant->output_count,
        .inputs = pointers,
        .outputs = outputs,
    };
    const uint64_t sequence = rondo_error_get_last()->sequence;
    rondo_status status = rondo__op_check(&mutant->op);
    if (status == RONDO_STATUS_OK) {
        status = rondo__op_compute(&compute);
    }
    totals->run_count++;
    if (status != RONDO_STATUS_OK) {
        totals->refused_count++;
        const rondo_error *error = rondo_error_get_last();
        if (error->sequence == sequence || error->message[0] == '\0') {
            fail_msg("%s: %s: %s without a record", totals->directory, mutant->op.def->name,
                     rondo_status_get_name(status));
        }
        if (status == RONDO_STATUS_INTERNAL) {
            fail_msg("%s: blames the library: %s", totals->directory, error->message);
        }
    }
    for (size_t i = 0; i < OUTPUT_MAX; i++) {
        rondo_tensor_deinit(&outputs[i]);
    }
}

static void attack(void *user_data, const rondo__node *node, const rondo_tensor *const *inputs) {
    hostile_totals *totals = user_data;
    if ((node->op.def->flags & RONDO__OP_CONTROL) != 0 || node->input_count > INPUT_MAX ||
        node->output_count > OUTPUT_MAX) {
        return;
    }
    random_state = 1;
    for (const char *c = totals->directory; *c != '\0'; c++) {
        random_state = random_state * 131 + (uint64_t)(unsigned char)*c;
    }
    for (uint32_t round = 0; round < totals->round_count; round++) {
        mutant_node mutant = {.input_count = node->input_count, .output_count = node->output_count};
        assert_int_equal(rondo__op_copy(&node->op, &mutant.op), RONDO_STATUS_OK);
        for (size_t i = 0; i < node->input_count; i++) {
            if (inputs[i] != NULL) {
                rondo_tensor_retain(inputs[i], &mutant.inputs[i]);
                remake(&mutant.inputs[i], inputs[i]->dtype, &inputs[i]->shape);
            }
        }
        for (uint32_t i = draw(3) + 1; i > 0; i--) {
            mutate(&mutant);
        }
        run_mutant(totals, &mutant);
        for (size_t i = 0; i < INPUT_MAX; i++) {
            rondo_tensor_deinit(&mutant.inputs[i]);
        }
        rondo__op_deinit(&mutant.op);
    }
}

static uint32_t wanted_rounds = 20;
static const char *wanted_part = "";

static void test_op_hostile__nothing_crashes(void **state) {
    (void)state;
    struct dirent **entries = NULL;
    const int entry_count = scandir(NODES, &entries, NULL, alphasort);
    if (entry_count < 0) {
        printf("skipped: " NODES " is not there (Debian and Ubuntu: libonnx-testdata)\n");
        skip();
    }
    limit_memory();
    hostile_totals totals = {.round_count = wanted_rounds};
    for (int i = 0; i < entry_count; i++) {
        if (strncmp(entries[i]->d_name, "test_", 5) == 0 &&
            strstr(entries[i]->d_name, wanted_part) != NULL) {
            char path[512];
            char reason[512];
            snprintf(path, sizeof path, NODES "/%s", entries[i]->d_name);
            totals.directory = path;
            (void)node_runner_visit(path, attack, &totals, reason, sizeof reason);
        }
        free(entries[i]);
    }
    free(entries);
    printf("%llu runs, %llu refused\n", (unsigned long long)totals.run_count,
           (unsigned long long)totals.refused_count);
    // Were nearly all refused at the door, or nearly none, the mutations would prove nothing.
    assert_true(totals.refused_count * 10 > totals.run_count);
    assert_true(totals.refused_count * 10 < totals.run_count * 9);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        wanted_rounds = (uint32_t)strtoul(argv[1], NULL, 10);
    }
    if (argc > 2) {
        wanted_part = argv[2];
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_op_hostile__nothing_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
