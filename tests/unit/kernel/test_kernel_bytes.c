// Host kernels on 8-bit numbers against the plain references, bit for bit: sums, steps, and floats
// that are rounded once. Run again for each instruction set (RONDO_MAX_CPU_ISA), since each has
// tiles of its own.
//
// A row is text: "u8[5,7]" is random, with 0, 255 and -128 among it; ":c" is known when the kernel
// is prepared, ":p" of floats are positive, ":s" has NaN, infinities and numbers beyond all steps,
// ":h" halves that end as ties, ":n" bytes of which most are small, "-" is absent.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/host/simd/byte_simd.h"
#include "kernel/kernel.h"
#include "support/expect_ok.h"
#include "support/test.h"

enum { INPUTS_MAX = 12, OUTPUTS_MAX = 3, GUARD = 64 };

typedef struct case_row {
    const char *op;
    const char *inputs;
    const char *attributes;      // "name=1,2 ..."
    double tolerance;            // 0: every bit
    const char *implementation;  // NULL: "simd"
} case_row;

static uint32_t random_state = 1;

static uint32_t draw(uint32_t limit) {
    random_state = random_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(random_state >> 8) * limit) >> 24);
}

static float draw_float(char kind) {
    static const float strange[] = {NAN, INFINITY, -INFINITY, 3e38f, -3e38f, 1e-40f, -0.0f, 0.0f};
    const float value = (float)draw(1u << 24) / 8388608.0f - 1.0f;
    if (kind == 's' && draw(8) == 0) {
        return strange[draw(8)];
    }
    return kind == 'p'   ? 0.001f + 0.01f * fabsf(value)
           : kind == 'h' ? (float)draw(64) * 0.5f - 16.0f
                         : 3.0f * value;
}

static void fill(rondo_tensor *tensor, char kind) {
    const int64_t count = rondo_shape_get_count(&tensor->shape);
    for (int64_t i = 0; i < count; ++i) {
        if (tensor->dtype == RONDO_DTYPE_F32) {
            ((float *)tensor->data)[i] = draw_float(kind);
        } else if (tensor->dtype == RONDO_DTYPE_I32) {
            ((int32_t *)tensor->data)[i] = (int32_t)draw(1u << 24) * (draw(2) == 0 ? 100 : -3);
        } else if (kind == 'n') {
            const uint32_t mean = (draw(256) + draw(256) + draw(256) + draw(256) + 2) / 4;
            ((uint8_t *)tensor->data)[i] =
                (uint8_t)(tensor->dtype == RONDO_DTYPE_I8 ? mean - 128 : mean);
        } else {
            static const uint8_t ends[] = {0, 255, 128, 127};
            const bool is_wide = rondo_dtype_get_bytes(tensor->dtype) == 2;
            for (int64_t k = is_wide ? 2 * i : i; k <= (is_wide ? 2 * i + 1 : i); ++k) {
                ((uint8_t *)tensor->data)[k] = draw(3) == 0 ? ends[draw(4)] : (uint8_t)draw(256);
            }
        }
    }
}

typedef struct parsed {
    rondo__op op;
    size_t input_count, output_count;
    rondo_tensor inputs[INPUTS_MAX];
    bool is_known[INPUTS_MAX];
} parsed;

static void parse_inputs(const char *text, parsed *to) {
    char copy[512], *keep = NULL;
    (void)snprintf(copy, sizeof copy, "%s", text);
    for (char *token = strtok_r(copy, " ", &keep); token != NULL;
         token = strtok_r(NULL, " ", &keep)) {
        const size_t index = to->input_count++;
        assert_in_range(index, 0, INPUTS_MAX - 1);
        if (strcmp(token, "-") == 0) {
            continue;
        }
        const rondo_dtype dtype = strncmp(token, "u16", 3) == 0   ? RONDO_DTYPE_U16
                                  : strncmp(token, "i16", 3) == 0 ? RONDO_DTYPE_I16
                                  : token[0] == 'u'               ? RONDO_DTYPE_U8
                                  : token[1] == '8'               ? RONDO_DTYPE_I8
                                  : token[0] == 'i'               ? RONDO_DTYPE_I32
                                                                  : RONDO_DTYPE_F32;
        rondo_shape shape = {0};
        char *at = strchr(token, '[') + 1;
        while (*at != ']') {
            shape.extent[shape.rank++] = strtoll(at, &at, 10);
            at += *at == ',';
        }
        OK(rondo_tensor_init(dtype, &shape, &to->inputs[index]));
        to->is_known[index] = strchr(at, 'c') != NULL;
        fill(&to->inputs[index], strchr(at, 'p') != NULL   ? 'p'
                                 : strchr(at, 's') != NULL ? 's'
                                 : strchr(at, 'h') != NULL ? 'h'
                                 : strchr(at, 'n') != NULL ? 'n'
                                                           : 'u');
    }
}

static void parse(const case_row *from, parsed *to) {
    char copy[256], *keep = NULL;
    const char *dot = strrchr(from->op, '.');
    *to = (parsed){0};
    const char *domain = dot == NULL                          ? ""
                         : strncmp(from->op, "rondo", 5) == 0 ? "rondo"
                                                              : "com.microsoft";
    to->op.def = rondo__op_lookup(domain, dot != NULL ? dot + 1 : from->op, dot != NULL ? 1 : 21);
    assert_non_null(to->op.def);
    to->op.name = strdup("case");
    to->op.opset = 21;
    to->output_count = strstr(from->op, "MaxPool") != NULL ? 1 : to->op.def->output_max;
    parse_inputs(from->inputs, to);
    (void)snprintf(copy, sizeof copy, "%s", from->attributes);
    for (char *token = strtok_r(copy, " ", &keep); token != NULL;
         token = strtok_r(NULL, " ", &keep)) {
        int64_t values[8];
        size_t count = 0;
        char *at = strchr(token, '=');
        const bool is_list = strchr(at, ',') != NULL;
        *at++ = '\0';
        if (*at >= 'a') {
            OK(rondo__op_set_string(&to->op, token, at));
            continue;
        }
        while (*at != '\0') {
            values[count++] = strtoll(at, &at, 10);
            at += *at == ',';
        }
        OK(is_list ? rondo__op_set_ints(&to->op, token, values, count)
                   : rondo__op_set_int(&to->op, token, values[0]));
    }
}

static bool is_same(const case_row *row, const rondo_tensor *wanted, const void *result) {
    const int64_t count = rondo_shape_get_count(&wanted->shape);
    if (wanted->dtype != RONDO_DTYPE_F32) {
        return memcmp(wanted->data, result, rondo_tensor_get_bytes(wanted)) == 0;
    }
    for (int64_t i = 0; i < count; ++i) {
        const float a = ((const float *)wanted->data)[i], b = ((const float *)result)[i];
        const bool is_close = row->tolerance > 0.0 && fabs((double)a - (double)b) <= row->tolerance;
        if (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b)) && !is_close) {
            return false;
        }
    }
    return true;
}

// Runs the kernel twice, with bytes behind the outputs that must stay.
static void run(const case_row *row, const parsed *from, const rondo__kernel_request *request,
                rondo_tensor *wanted) {
    const void *inputs[INPUTS_MAX] = {NULL};
    void *outputs[OUTPUTS_MAX] = {NULL};
    rondo__kernel *kernel;
    OK(rondo__kernel_prepare(request, &kernel));
    assert_string_equal(kernel->implementation,
                        row->implementation != NULL ? row->implementation : "simd");
    void *workspace = rondo__malloc_aligned(kernel->workspace_bytes + GUARD, 64);
    for (size_t i = 0; i < from->input_count; ++i) {
        inputs[i] = from->is_known[i] ? NULL : from->inputs[i].data;
    }
    for (int round = 0; round < 2; ++round) {
        memset(workspace, 0xA5, kernel->workspace_bytes + GUARD);
        for (size_t i = 0; i < from->output_count; ++i) {
            const size_t bytes = rondo_tensor_get_bytes(&wanted[i]);
            outputs[i] = malloc(bytes + GUARD);
            memset(outputs[i], 0xA5, bytes + GUARD);
        }
        OK(kernel->run(kernel, inputs, outputs, workspace));
        for (size_t i = 0; i < from->output_count; ++i) {
            const uint8_t *guard = (const uint8_t *)outputs[i] + rondo_tensor_get_bytes(&wanted[i]);
            for (int j = 0; j < GUARD; ++j) {
                assert_int_equal(guard[j], 0xA5);
            }
            if (!is_same(row, &wanted[i], outputs[i])) {
                fail_msg("%s %s {%s}: output %zu differs from the reference", row->op, row->inputs,
                         row->attributes, i);
            }
            free(outputs[i]);
        }
        for (size_t j = 0; j < GUARD; ++j) {
            assert_int_equal(((uint8_t *)workspace)[kernel->workspace_bytes + j], 0xA5);
        }
    }
    rondo__free(workspace);
    rondo__kernel_destroy(kernel);
}

static void check(rondo_device *device, const case_row *row) {
    parsed from;
    rondo__tensor_info inputs[INPUTS_MAX] = {{0}}, outputs[OUTPUTS_MAX] = {{0}};
    const rondo_tensor *tensors[INPUTS_MAX] = {NULL};
    rondo_tensor wanted[OUTPUTS_MAX] = {{0}};
    parse(row, &from);
    for (size_t i = 0; i < from.input_count; ++i) {
        const rondo_tensor *tensor = &from.inputs[i];
        tensors[i] = tensor->dtype != RONDO_DTYPE_NONE ? tensor : NULL;
        inputs[i] = (rondo__tensor_info){.dtype = tensor->dtype,
                                         .is_shape_known = true,
                                         .shape = tensor->shape,
                                         .constant = from.is_known[i] ? tensor : NULL};
    }
    rondo__compute compute = {.op = &from.op,
                              .input_count = from.input_count,
                              .output_count = from.output_count,
                              .inputs = tensors,
                              .outputs = wanted};
    OK(rondo__op_compute(&compute));
    for (size_t i = 0; i < from.output_count; ++i) {
        outputs[i] = (rondo__tensor_info){
            .dtype = wanted[i].dtype, .is_shape_known = true, .shape = wanted[i].shape};
    }
    rondo__weight_account account = {0};
    rondo__weight_list weights;
    OK(rondo__weight_store_create(device, RONDO_MEMORY_DEVICE, &account.store));
    OK(rondo_stream_create(device, NULL, &account.stream));
    rondo__weight_list_init(&account, &weights);
    const rondo__kernel_request request = {.device = device,
                                           .op = &from.op,
                                           .weights = &weights,
                                           .input_count = from.input_count,
                                           .inputs = inputs,
                                           .output_count = from.output_count,
                                           .outputs = outputs};
    run(row, &from, &request, wanted);
    rondo__weight_list_cut(&weights, 0);
    rondo__weight_store_destroy(account.store);
    rondo_stream_destroy(account.stream);
    for (size_t i = 0; i < from.output_count; ++i) {
        rondo_tensor_deinit(&wanted[i]);
    }
    for (size_t i = 0; i < from.input_count; ++i) {
        rondo_tensor_deinit(&from.inputs[i]);
    }
    rondo__op_deinit(&from.op);
}

static void check_all(const case_row *rows, size_t count) {
    rondo_device *device;
    OK(rondo_device_open("host", &device));
    for (size_t i = 0; i < count; ++i) {
        check(device, &rows[i]);
    }
    rondo_device_release(device);
}
#define CHECK_ALL(rows) check_all(rows, sizeof(rows) / sizeof((rows)[0]))

#define EXACT(op, inputs, attributes) \
    { op, inputs, attributes, 0.0, NULL }
#define REFERENCE(op, inputs, attributes) \
    { op, inputs, attributes, 0.0, "reference" }

TEST(test_kernel_bytes__products) {
    const case_row rows[] = {
        EXACT("MatMulInteger", "u8[5,7] i8[7,9]:c u8[] i8[]", ""),
        EXACT("MatMulInteger", "u8[1,64] i8[64,70]:c u8[] i8[]:c", ""),
        EXACT("MatMulInteger", "u8[13,8] u8[8,32] u8[] u8[]", ""),
        EXACT("MatMulInteger", "i8[12,33] i8[33,31]:c i8[] i8[]", ""),
        EXACT("MatMulInteger", "i8[3,2] u8[2,65] i8[3] u8[65]", ""),
        EXACT("MatMulInteger", "u8[25,130] i8[130,40]:c u8[25] i8[40]", ""),
        EXACT("MatMulInteger", "u8[2,3,50] i8[50,17]:c u8[3] -", ""),
        EXACT("MatMulInteger", "i8[2,3,5,6] u8[3,6,7] - u8[]", ""),
        EXACT("MatMulInteger", "u8[2,1,4,9] i8[3,9,33]:c", ""),
        EXACT("MatMulInteger", "u8[40] i8[40,3]", ""),
        EXACT("MatMulInteger", "u8[4,1] u8[1,1]", ""),
        EXACT("MatMulInteger", "u8[64,513] i8[513,257]:c u8[] -", ""),  // on several threads
        EXACT("MatMulInteger", "u8[2,33025] i8[33025,3] u8[] i8[]", ""),
        REFERENCE("MatMulInteger", "u8[1,33026] u8[33026,2]", ""),
        REFERENCE("MatMulInteger", "u8[0,4] i8[4,3]", ""),
        EXACT("QLinearMatMul", "u8[5,17] f32[]:p u8[] i8[17,9]:c f32[]:p i8[] f32[]:p u8[]", ""),
        EXACT("QLinearMatMul", "i8[2,3,6] f32[3]:p i8[3] u8[6,40] f32[40]:p u8[40] f32[1]:p i8[1]",
              ""),
        EXACT("QLinearMatMul", "u8[70,90] f32[]:h u8[] i8[90,80] f32[]:h i8[] f32[]:h u8[]", ""),
    };
    CHECK_ALL(rows);
}

TEST(test_kernel_bytes__convolutions) {
    const case_row rows[] = {
        EXACT("ConvInteger", "u8[1,3,9,11] u8[5,3,3,3]:c u8[] u8[]", "pads=1,1,1,1"),
        EXACT("ConvInteger", "i8[2,4,8,8] i8[13,4,1,1]:c i8[] i8[]:c", ""),
        EXACT("ConvInteger", "u8[1,2,10,37] i8[3,2,3,5] u8[] -", "strides=2,3 pads=1,2,0,4"),
        EXACT("ConvInteger", "u8[1,2,12,40] u8[4,2,3,3] - u8[4]", "dilations=3,2 strides=1,2"),
        EXACT("ConvInteger", "i8[1,6,5,33] u8[4,3,2,2]:c i8[] u8[]", "group=2 pads=1,1,1,1"),
        EXACT("ConvInteger", "u8[2,4,7,7] i8[4,1,3,3]:c u8[] -", "group=4 pads=1,1,1,1"),
        EXACT("ConvInteger", "u8[1,3,50] i8[2,3,7]:c u8[] i8[]", "pads=3,3 strides=2"),
        EXACT("ConvInteger", "i8[2,3,9,40] u8[6,1,3,5]:c i8[] u8[]",
              "group=3 pads=1,2,0,4 strides=1,2"),
        EXACT("ConvInteger", "u8[1,2,3,1100] i8[2,1,2,3] u8[] i8[2]", "group=2 dilations=1,3"),
        EXACT("ConvInteger", "u8[1,2,70,37] i8[4,1,3,3] u8[] i8[4]", "group=2 pads=1,1,1,1"),
        EXACT("ConvInteger", "i8[1,2,60,70] u8[2,1,5,3]:c i8[] -", "group=2 strides=2,2"),
        EXACT("QLinearConv",
              "u8[2,5,9,11] f32[]:p u8[] i8[5,1,3,3]:c f32[5]:p i8[5] f32[]:p u8[] i32[5]",
              "group=5 pads=1,1,1,1 strides=2,2"),
        EXACT("ConvInteger", "i8[1,40,9,75] u8[40,1,3,3]:c i8[] u8[40]", "group=40 pads=1,1,1,1"),
        EXACT("ConvInteger", "u8[2,3,4,600] i8[3,1,2,2] u8[] i8[3]", "group=3 pads=0,20,1,9"),
        EXACT("ConvInteger", "u8[2,30,14,14] i8[30,1,3,3]:c u8[] -", "group=30 pads=1,1,1,1"),
        EXACT("ConvInteger", "u8[1,3,9,33] i8[3,1,3,3]:c u8[] -",
              "group=3 strides=2,2 pads=1,1,1,1"),
        EXACT("ConvInteger", "i8[1,3,9,25] i8[3,1,3,3]:c i8[] -",
              "group=3 strides=1,2 pads=1,0,1,1"),
        EXACT("ConvInteger", "u8[1,3,9,15] u8[3,1,2,4]:c u8[] -",
              "group=3 strides=2,2 pads=0,3,1,3"),
        EXACT("ConvInteger", "u8[1,16,40,33] i8[32,16,3,3]:c u8[] i8[]", "pads=1,1,1,1"),
        EXACT("ConvInteger", "u8[1,24,6,9] i8[17,24,1,1]:cn u8[] -", ""),
        EXACT("ConvInteger", "u8[1,24,6,9] i8[17,24,1,1]:c u8[] i8[17]", ""),
        EXACT("ConvInteger", "u8[1,2,3,4] u8[2,2,5,6] u8[] u8[]", "pads=9,1,1,9"),
        EXACT("ConvInteger", "u8[1,7,9,11] i8[15,7,3,3]:cn u8[] i8[]", "pads=1,1,1,1"),
        EXACT("ConvInteger", "i8[2,33,5,7] u8[21,33,1,1]:cn i8[] u8[]", ""),
        EXACT("ConvInteger", "u8[1,6,9,40] u8[10,3,3,1]:cn u8[] -", "group=2 strides=2,1"),
        EXACT("ConvInteger", "u8[1,1,4,4,4] u8[2,1,2,2,2]", ""),
        EXACT("ConvInteger", "u8[2,3,5,6,7] i8[8,3,3,3,3]:c u8[] i8[8]", "pads=1,1,1,1,1,1"),
        EXACT("ConvInteger", "i8[1,4,9,7,20] u8[6,2,3,2,3]:c i8[] u8[]",
              "group=2 strides=2,1,3 pads=0,1,2,2,0,1 dilations=1,3,2"),
        EXACT("ConvInteger", "u8[2,4,5,6,7] i8[8,1,3,3,3]:c u8[] i8[8]",
              "group=4 pads=1,1,1,1,1,1"),
        EXACT("ConvInteger", "i8[1,3,7,9,70] u8[3,1,2,3,3] i8[] u8[]",
              "group=3 strides=2,2,1 dilations=2,1,1"),
        EXACT("ConvInteger", "u8[2,5,3,4,11] i8[7,5,1,1,1]:c u8[] i8[]", ""),
        EXACT("ConvInteger", "i8[1,5,6,4,11] i8[7,5,1,1,1] i8[] -", "strides=2,1,2"),
        EXACT("ConvInteger", "u8[1,2,2,3,4] u8[2,2,3,5,6] u8[] u8[]", "pads=1,9,1,1,1,9"),
        REFERENCE("ConvInteger", "u8[1,1,3,3,3,3] u8[2,1,2,2,2,2]", ""),
        EXACT("QLinearConv",
              "u8[2,3,4,9,11] f32[]:p u8[] i8[5,3,2,3,3]:c f32[5]:p i8[5] f32[]:p u8[] i32[5]",
              "pads=0,1,1,1,1,1"),
        EXACT("QLinearConv",
              "i8[2,3,5,6,7] f32[]:p i8[] i8[3,1,3,3,3]:c f32[3]:p i8[3] f32[]:p i8[] i32[3]",
              "group=3 pads=1,1,1,1,1,1 strides=1,2,2"),
        EXACT("QLinearConv",
              "u8[1,3,9,11] f32[]:p u8[] i8[5,3,3,3]:c f32[5]:p i8[5] f32[]:p u8[] i32[5]",
              "pads=1,1,1,1"),
        EXACT("QLinearConv", "i8[2,4,6,6] f32[]:h i8[] u8[6,2,1,1] f32[]:h u8[] f32[]:h i8[]",
              "group=2"),
    };
    CHECK_ALL(rows);
}

TEST(test_kernel_bytes__steps) {
    const case_row rows[] = {
        EXACT("DynamicQuantizeLinear", "f32[3,5]", ""),
        EXACT("DynamicQuantizeLinear", "f32[40000]", ""),
        EXACT("DynamicQuantizeLinear", "f32[17]:p", ""),
        EXACT("DynamicQuantizeLinear", "f32[33]:s", ""),
        EXACT("DynamicQuantizeLinear", "f32[511]:h", ""),
        EXACT("QuantizeLinear", "f32[3,65] f32[]:p u8[]", ""),
        EXACT("QuantizeLinear", "f32[3,65]:s f32[]:p i8[]", ""),
        EXACT("QuantizeLinear", "f32[200]:h f32[1]:h i8[1]", ""),
        EXACT("QuantizeLinear", "f32[2,5,7] f32[5] i8[5]", "axis=1"),
        EXACT("QuantizeLinear", "f32[3,65] f32[]:p u16[]", ""),
        EXACT("QuantizeLinear", "f32[3,65]:s f32[]:p i16[]", ""),
        EXACT("QuantizeLinear", "f32[200]:h f32[1]:h i16[1]", ""),
        EXACT("QuantizeLinear", "f32[4,37]:s f32[37]:p u16[37]", "axis=-1"),
        EXACT("DequantizeLinear", "u16[3,65] f32[]:p u16[]", ""),
        EXACT("DequantizeLinear", "i16[2,5,7] f32[5] i16[5]", "axis=1"),
        EXACT("QuantizeLinear", "f32[4,37]:s f32[37]:p u8[37]", "axis=-1"),
        EXACT("QuantizeLinear", "f32[3,10,4] f32[3,4,4]:p u8[3,4,4]", "axis=1 block_size=3"),
        EXACT("QuantizeLinear", "f32[3,10]:s f32[3,4]:p", "axis=1 block_size=3"),
        EXACT("QuantizeLinear", "f32[40000] f32[]:p -", ""),
        EXACT("DequantizeLinear", "u8[3,65] f32[] u8[]", ""),
        EXACT("DequantizeLinear", "i8[3,65] f32[65]:s i8[65]", "axis=1"),
        EXACT("DequantizeLinear", "i8[2,5,7]:c f32[5] -", "axis=1"),
        EXACT("DequantizeLinear", "u8[3,10,4] f32[3,4,4] u8[3,4,4]", "axis=1 block_size=3"),
        EXACT("DequantizeLinear", "u8[3,10] f32[3,4] u8[3,4]", "axis=1 block_size=3"),
        EXACT("DequantizeLinear", "i8[40001] f32[] i8[]", ""),
        EXACT("Cast", "i32[5,7]", "to=1"),
        EXACT("Cast", "i32[40001]", "to=1"),
    };
    CHECK_ALL(rows);
}

// a, its scale and zero point, those of b, and y's; then windows of bytes.
TEST(test_kernel_bytes__sums_and_pools) {
    const case_row rows[] = {
        EXACT("rondo.QLinearAdd", "u8[3,65] f32[]:p u8[] u8[3,65] f32[]:p u8[] f32[]:p u8[]", ""),
        EXACT("rondo.QLinearAdd", "i8[2,5,70] f32[]:p i8[] u8[70] f32[]:p u8[] f32[]:p i8[]", ""),
        EXACT("rondo.QLinearAdd", "u16[4,33] f32[]:p u16[] u16[4,1] f32[]:p u16[] f32[]:p i16[]",
              ""),
        EXACT("rondo.QLinearAdd", "u8[] f32[]:p u8[] i16[2,1500] f32[]:p i16[] f32[]:p u8[]", ""),
        EXACT("rondo.QLinearAdd", "i8[3,1,2100] f32[]:p i8[] i8[1,40,1] f32[]:p i8[] f32[]:p u8[]",
              ""),  // on several threads
        EXACT("MaxPool", "u8[2,3,9,11]", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
        EXACT("MaxPool", "i8[1,5,8,40]", "kernel_shape=2,3 strides=1,3 dilations=2,2"),
        EXACT("MaxPool", "i8[1,2,6,7,9]", "kernel_shape=3,2,2 strides=2,2,1 pads=1,0,1,1,1,0"),
        EXACT("MaxPool", "u8[4,3,5,50]", "kernel_shape=5,1 pads=2,0,2,0"),
        EXACT("MaxPool", "i8[2,2,4,5000]", "kernel_shape=2,2 strides=2,2"),
        EXACT("MaxPool", "u8[1,64,112,112]", "kernel_shape=3,3 strides=2,2 pads=1,1,1,1"),
        EXACT("rondo.MaxPool", "i8[2,9,11,37]", "channels_last=1 kernel_shape=3,3 pads=1,1,1,1"),
        REFERENCE("MaxPool", "u8[1,1,4,4]", "kernel_shape=1,1 strides=1,3 pads=1,1,1,1"),
    };
    CHECK_ALL(rows);
}

#define LSTM "com.microsoft.DynamicQuantizeLSTM"
TEST(test_kernel_bytes__recurrence) {
    const case_row rows[] = {
        {LSTM,
         "f32[4,1,6] i8[1,6,32]:c i8[1,8,32]:c f32[1,64] - - - - f32[1]:p i8[1]:c f32[1]:p i8[1]:c",
         "hidden_size=8", 1e-3, NULL},
        {LSTM,
         "f32[3,2,40] u8[2,40,80]:c u8[2,20,80]:c - - f32[2,2,20] f32[2,2,20] - f32[2,80]:p "
         "u8[2,80]:c f32[2,80]:p u8[2,80]:c",
         "hidden_size=20 direction=bidirectional", 1e-3, NULL},
        {LSTM, "f32[5,1,7]:s i8[1,7,12]:c i8[1,3,12]:c - - - - - f32[1]:p - f32[1]:p -",
         "hidden_size=3 direction=reverse", 1e-3, NULL},
        {LSTM, "f32[2,1,7] i8[1,7,12]:c i8[1,3,12]:c - - - - f32[1,9] f32[1]:p - f32[1]:p -",
         "hidden_size=3", 0, "reference"},
    };
    CHECK_ALL(rows);
}

// What the levels of this processor say of one product, tile by tile, is the same.
TEST(test_kernel_bytes__levels_agree) {
    const rondo__byte_simd *tables[RONDO__BYTE_LEVEL_MAX];
    const int count = rondo__byte_simd_list(tables);
    enum { K = 23, ROWS = 4, SPACE = 32 };
    uint8_t x[ROWS * K], w[K * SPACE];
    for (size_t i = 0; i < sizeof x; ++i) {
        x[i] = i % 3 == 0 ? 255 : (uint8_t)draw(256);
    }
    for (size_t i = 0; i < sizeof w; ++i) {
        w[i] = i % 3 == 0 ? 128 : (uint8_t)draw(256);
    }
    for (int t = 0; t < count; ++t) {
        const rondo__byte_simd *simd = tables[t];
        int8_t panel[(K + 3) * SPACE] = {0};
        char a[ROWS][4 * K];
        int32_t sums[SPACE] = {0}, ones[ROWS], rests[ROWS], y[ROWS][SPACE];
        const int64_t blocks = (K + simd->group - 1) / simd->group;
        for (int64_t b = 0; b < blocks; ++b) {
            uint8_t rows[RONDO__BYTE_GROUP_MAX * RONDO__BYTE_COLUMNS_MAX] = {0};
            for (int64_t g = 0; g < simd->group && b * simd->group + g < K; ++g) {
                memcpy(rows + g * simd->panel_columns, w + (b * simd->group + g) * SPACE,
                       (size_t)simd->panel_columns);
            }
            simd->pack_block(rows, true, panel + b * simd->group * simd->panel_columns, sums);
        }
        for (int r = 0; r < ROWS; ++r) {
            rests[r] = simd->prepare_row(x + r * K, false, K, a[r]);
            ones[r] = 1;
        }
        const rondo__byte_tile tile = {.blocks = blocks,
                                       .a = a,
                                       .a_row = sizeof a[0],
                                       .b = panel,
                                       .cut_count = -1,
                                       .rows = ROWS,
                                       .columns = simd->panel_columns - 1,
                                       .b_sums = sums,
                                       .a_factors = ones,
                                       .a_rests = rests,
                                       .y = y,
                                       .y_row = SPACE};
        simd->multiply(&tile);
        for (int r = 0; r < ROWS; ++r) {
            for (int c = 0; c < simd->panel_columns - 1; ++c) {
                int32_t wanted = 0;
                for (int k = 0; k < K; ++k) {
                    wanted += (x[r * K + k] + 1) * (int8_t)w[k * SPACE + c];
                }
                if (y[r][c] != wanted) {
                    fail_msg("%s: row %d, column %d is %d, not %d", simd->name, r, c, y[r][c],
                             wanted);
                }
            }
        }
    }
}

// Loops of every table at every count: what they do to their last pieces, and sums that wrap with
// their bias.
TEST(test_kernel_bytes__loops_of_all_levels) {
    enum { COUNT = 70, TAPS = 5, ALIGN = 16 };
    const rondo__byte_simd *tables[RONDO__BYTE_LEVEL_MAX];
    const int levels = rondo__byte_simd_list(tables);
    uint8_t x[2 * COUNT + ALIGN], y[COUNT];
    int32_t sums[COUNT + ALIGN], found[COUNT + ALIGN];
    for (int t = 0; t < levels * COUNT; ++t) {
        const rondo__byte_simd *simd = tables[t / COUNT];
        const int count = 1 + t % COUNT, wrapping = (int)draw(COUNT);
        for (int i = 0; i < 2 * COUNT + ALIGN; ++i) {
            x[i] = (uint8_t)draw(256);
        }
        uint8_t *exact = malloc((size_t)(2 * count - 1));  // nothing behind its end may be read
        assert_non_null(exact);
        memcpy(exact, x, (size_t)(2 * count - 1));
        memset(y, 0x5a, sizeof y);
        simd->take_every_second(exact, y, count);
        free(exact);
        for (int i = 0; i < COUNT; ++i) {
            assert_int_equal(y[i], i < count ? x[2 * i] : 0x5a);
        }

        const int whole = (count + ALIGN - 1) / ALIGN * ALIGN;
        int64_t places[TAPS];
        int32_t weights[TAPS];
        for (int k = 0; k < TAPS; ++k) {
            places[k] = draw(COUNT - ALIGN);
            weights[k] = (int32_t)draw(511) - 255;
        }
        for (int is_signed = 0; is_signed < 2; ++is_signed) {
            const int taps = 1 + (int)draw(TAPS);
            simd->add_taps(x, is_signed, places, weights, taps, 7, whole, found);
            for (int i = 0; i < whole; ++i) {
                int32_t wanted = 7;
                for (int k = 0; k < taps; ++k) {
                    const uint8_t seen = x[places[k] + i];
                    wanted += weights[k] * (is_signed ? (int8_t)seen : seen);
                }
                assert_int_equal(found[i], wanted);
            }
        }

        const int32_t bias = draw(2) == 0 ? INT32_MAX - 5 : INT32_MIN + 5;
        const int side = bias < 0 ? 1 : -1;
        for (int i = 0; i < count; ++i) {
            sums[i] = i == wrapping ? -20 * side : side * (int32_t)draw(1 << 30);
        }
        memset(y, 0x5a, sizeof y);
        simd->requantize(sums, bias, 1e-7f, NULL, 1.0f, 3, false, count, y);
        for (int i = 0; i < COUNT; ++i) {
            const float value = (float)((double)sums[i % count] + (double)bias) * 1e-7f;
            const float step = rintf(value) + 3.0f;
            const int wanted = step < 0.0f ? 0 : step > 255.0f ? 255 : (int)step;
            assert_int_equal(y[i], i < count ? wanted : 0x5a);
        }
    }
}

int main(void) {
    printf("level: %s\n", rondo__byte_simd_get()->name);
    return RUN_TESTS(NULL, NULL);
}
