// What all targets share: mutation by structure, and a limit on memory.
//
// Bytes changed at random rarely stay a model, since lengths no longer fit. So half of the
// mutations unpack the model, change one number, name, type or extent, and pack it again.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "onnx.pb-c.h"
#include "rondo/onnx.h"

const char *__asan_default_options(void);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

// A few bytes may rightly ask for gigabytes (ConstantOfShape, say). As on a machine that has less,
// such a request fails, and the run must end with an error.
const char *__asan_default_options(void) {
    return "allocator_may_return_null=1:max_allocation_size_mb=256";
}

// Marsaglia's xorshift; the seed comes from libFuzzer, so runs repeat.
static uint32_t draw(uint32_t *random, uint32_t bound) {
    *random ^= *random << 13;
    *random ^= *random >> 17;
    *random ^= *random << 5;
    return bound == 0 ? 0 : *random % bound;
}

static int64_t draw_number(uint32_t *random) {
    static const int64_t numbers[] = {
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        8,
        16,
        100,
        1000,
        -1,
        -2,
        -3,
        -4,
        -5,
        INT32_MAX,
        INT32_MIN,
        INT64_C(1) << 31,
        INT64_C(1) << 32,
        INT64_C(1) << 62,
        INT64_MAX,
        INT64_MIN,
        INT64_MIN + 1,
    };
    return numbers[draw(random, sizeof(numbers) / sizeof(numbers[0]))];
}

static float draw_float(uint32_t *random) {
    static const float numbers[] = {0.0f,  -0.0f,  1.0f,     -1.0f,     0.5f, 2.0f,
                                    1e30f, -1e30f, INFINITY, -INFINITY, NAN,  1e-40f};
    return numbers[draw(random, sizeof(numbers) / sizeof(numbers[0]))];
}

static void mutate_tensor(Onnx__TensorProto *tensor, uint32_t *random) {
    switch (draw(random, 4)) {
        case 0:
            tensor->has_data_type = 1;
            tensor->data_type = (int32_t)draw(random, 24);
            break;
        case 1:
            if (tensor->n_dims > 0) {
                tensor->dims[draw(random, (uint32_t)tensor->n_dims)] = draw_number(random);
            }
            break;
        case 2:
            if (tensor->has_raw_data && tensor->raw_data.len > 0) {
                int64_t number = draw_number(random);
                size_t at = draw(random, (uint32_t)tensor->raw_data.len) & ~UINT32_C(7);
                size_t count = tensor->raw_data.len - at;
                memcpy(tensor->raw_data.data + at, &number,
                       count < sizeof(number) ? count : sizeof(number));
            }
            break;
        default:
            if (tensor->n_int64_data > 0) {
                tensor->int64_data[draw(random, (uint32_t)tensor->n_int64_data)] =
                    draw_number(random);
            }
            break;
    }
}

static void mutate_attribute(Onnx__AttributeProto *attribute, uint32_t *random) {
    if (attribute->t != NULL) {
        mutate_tensor(attribute->t, random);
    }
    attribute->i = draw_number(random);
    attribute->f = draw_float(random);
    if (attribute->n_ints > 0) {
        attribute->ints[draw(random, (uint32_t)attribute->n_ints)] = draw_number(random);
        attribute->n_ints -= draw(random, 4) == 0;
    }
    if (attribute->n_floats > 0) {
        attribute->floats[draw(random, (uint32_t)attribute->n_floats)] = draw_float(random);
        attribute->n_floats -= draw(random, 4) == 0;
    }
}

static void mutate_node(Onnx__NodeProto *node, uint32_t *random) {
    switch (draw(random, 4)) {
        case 0:
            if (node->n_input > 1) {  // two inputs change places
                size_t a = draw(random, (uint32_t)node->n_input);
                size_t b = draw(random, (uint32_t)node->n_input);
                char *input = node->input[a];
                node->input[a] = node->input[b];
                node->input[b] = input;
            }
            break;
        case 1:
            if (node->n_input > 0 && node->input[node->n_input - 1] != NULL) {
                node->input[draw(random, (uint32_t)node->n_input)][0] = '\0';
            }
            break;
        default:
            if (node->n_attribute > 0) {
                mutate_attribute(node->attribute[draw(random, (uint32_t)node->n_attribute)],
                                 random);
            }
            break;
    }
}

static void mutate_type(Onnx__ValueInfoProto *info, uint32_t *random) {
    if (info->type == NULL || info->type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) {
        return;
    }
    Onnx__TypeProto__Tensor *tensor = info->type->tensor_type;
    if (draw(random, 3) == 0) {
        tensor->elem_type = (int32_t)draw(random, 17);
    } else if (tensor->shape != NULL && tensor->shape->n_dim > 0) {
        Onnx__TensorShapeProto__Dimension *dimension =
            tensor->shape->dim[draw(random, (uint32_t)tensor->shape->n_dim)];
        if (dimension->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
            dimension->dim_value = draw_number(random);
        }
    }
}

static void mutate_graph(Onnx__GraphProto *graph, uint32_t *random) {
    uint32_t choice = draw(random, 8);
    if (choice < 4 && graph->n_node > 0) {
        mutate_node(graph->node[draw(random, (uint32_t)graph->n_node)], random);
    } else if (choice < 6 && graph->n_input > 0) {
        mutate_type(graph->input[draw(random, (uint32_t)graph->n_input)], random);
    } else if (choice < 7 && graph->n_initializer > 0) {
        mutate_tensor(graph->initializer[draw(random, (uint32_t)graph->n_initializer)], random);
    } else if (graph->n_output > 0) {
        mutate_type(graph->output[draw(random, (uint32_t)graph->n_output)], random);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed) {
    uint32_t random = seed | 1;
    rondo_program *program = NULL;
    // protobuf-c trusts nesting to the stack: only what the importer takes is unpacked here.
    if (draw(&random, 2) == 0 ||
        rondo_program_parse_onnx(data, size, &program) != RONDO_STATUS_OK) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    rondo_program_destroy(program);
    Onnx__ModelProto *model = onnx__model_proto__unpack(NULL, size, data);
    if (model == NULL || model->graph == NULL) {
        onnx__model_proto__free_unpacked(model, NULL);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    mutate_graph(model->graph, &random);
    if (draw(&random, 8) == 0 && model->n_opset_import > 0) {
        model->opset_import[0]->version = 6 + (int64_t)draw(&random, 17);
    }
    size_t packed_size = onnx__model_proto__get_packed_size(model);
    if (packed_size <= max_size) {
        onnx__model_proto__pack(model, data);
        size = packed_size;
    }
    onnx__model_proto__free_unpacked(model, NULL);
    return size;
}
