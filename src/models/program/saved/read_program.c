// program/saved/read_program.c — see saved_program.h; the order of all parts is that of
// write_program.c.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "program/half/half_pass.h"
#include "program/place_mark.h"
#include "program/saved/saved_program.h"
#include "tensor/elements.h"
#include "tensor/storage.h"

typedef struct reader {
    rondo__record *in;
    const rondo__saved_data *data;
    rondo_program *program;
    int depth;            // of bodies
    size_t around_count;  // of a body: values of the program around it
    int32_t *numbers;     // the lists of values that were read last
    size_t number_capacity;
} reader;

static rondo_status read_whole(reader *r, rondo_program **out_program);

static rondo_status fail(const reader *r, const char *what) {
    return RONDO_FAIL(BAD_DATA, "the plan file's program \"%.60s\" is damaged: %s",
                      r->program != NULL ? r->program->name : "", what);
}

// Of what was read last.
static rondo_status check(const reader *r, const char *what) {
    return r->in->is_bad ? fail(r, what) : RONDO_STATUS_OK;
}

// ---- tensors ----------------------------------------------------------------------------------

static rondo_status read_tensor(reader *r, int depth, rondo_tensor *out_tensor);

static rondo_status read_plain(reader *r, rondo_dtype dtype, const rondo_shape *shape,
                               rondo_tensor *out_tensor) {
    const uint64_t offset = rondo__record_get_most(r->in, r->data->byte_count);
    const rondo_tensor shell = {.dtype = dtype, .shape = *shape};
    const size_t bytes = rondo_tensor_get_bytes(&shell);
    if (r->in->is_bad || offset % RONDO__DATA_ALIGNMENT != 0 ||
        bytes > r->data->byte_count - offset) {
        return fail(r, "a tensor lies outside of the data");
    }
    return rondo__tensor_init_storage(dtype, shape, (void *)(uintptr_t)(r->data->bytes + offset),
                                      r->data->storage, out_tensor);
}

static rondo_status read_strings(reader *r, const rondo_shape *shape, rondo_tensor *out_tensor) {
    const size_t count = (size_t)rondo_shape_get_count(shape);
    if (count > (size_t)(r->in->past - r->in->at)) {
        return fail(r, "strings are missing");
    }
    rondo_string *strings = rondo__calloc(count + 1, sizeof *strings);
    if (strings == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        strings[i].data = rondo__record_get_bytes(r->in, &strings[i].size);
    }
    rondo_status status = check(r, "strings are missing");
    if (status == RONDO_STATUS_OK) {
        status = rondo_tensor_init_strings(shape, strings, out_tensor);
    }
    rondo__free(strings);
    return status;
}

static rondo_status read_nested(reader *r, rondo_dtype dtype, const rondo_shape *shape, int depth,
                                rondo_tensor *out_tensor) {
    enum { DEPTH_MAX = 2 };  // an optional sequence of tensors
    const int64_t count = rondo_shape_get_count(shape);
    rondo_tensor *items = NULL;
    if (depth >= DEPTH_MAX || shape->rank != 1 || count > r->in->past - r->in->at ||
        (dtype == RONDO_DTYPE_OPTIONAL && count > 1)) {
        return fail(r, "a sequence is none");
    }
    RETURN_IF_ERROR(rondo__nested_create(dtype, (size_t)count, out_tensor, &items));
    rondo_status status = RONDO_STATUS_OK;
    for (int64_t i = 0; i < count && status == RONDO_STATUS_OK; ++i) {
        status = read_tensor(r, depth + 1, &items[i]);
        if (status == RONDO_STATUS_OK &&
            (items[i].dtype == RONDO_DTYPE_NONE || items[i].dtype == RONDO_DTYPE_OPTIONAL)) {
            status = fail(r, "a sequence holds nothing");
        }
    }
    if (status != RONDO_STATUS_OK) {
        rondo_tensor_deinit(out_tensor);
    }
    return status;
}

static rondo_status read_tensor(reader *r, int depth, rondo_tensor *out_tensor) {
    rondo_shape shape = {0};
    const rondo_dtype dtype = (rondo_dtype)rondo__record_get_most(r->in, RONDO_DTYPE_COUNT - 1);
    *out_tensor = (rondo_tensor){0};
    if (dtype == RONDO_DTYPE_NONE) {
        return check(r, "a tensor is missing");
    }
    shape.rank = (int32_t)rondo__record_get_most(r->in, RONDO_RANK_MAX);
    for (int32_t d = 0; d < shape.rank; ++d) {
        shape.extent[d] = (int64_t)rondo__record_get_most(r->in, INT64_MAX);
    }
    const int64_t count = rondo_shape_get_count(&shape);
    if (r->in->is_bad || count < 0 ||
        (count > 0 && (uint64_t)count > SIZE_MAX / 2 / rondo_dtype_get_bytes(dtype))) {
        return fail(r, "a tensor has no such shape");
    }
    return rondo__dtype_is_plain(dtype)  ? read_plain(r, dtype, &shape, out_tensor)
           : dtype == RONDO_DTYPE_STRING ? read_strings(r, &shape, out_tensor)
                                         : read_nested(r, dtype, &shape, depth, out_tensor);
}

// ---- values -----------------------------------------------------------------------------------

static rondo_dtype read_dtype(reader *r) {
    return (rondo_dtype)rondo__record_get_most(r->in, RONDO_DTYPE_COUNT - 1);
}

static void read_dims(reader *r, rondo__value *value) {
    const uint64_t rank = rondo__record_get_most(r->in, RONDO_RANK_MAX + 1);
    value->has_shape = rank > 0;
    value->rank = rank > 0 ? (int32_t)rank - 1 : 0;
    for (int32_t d = 0; d < value->rank; ++d) {
        const int64_t number = rondo__record_get_signed(r->in);
        const int64_t symbol = rondo__record_get_signed(r->in);
        r->in->is_bad =
            r->in->is_bad || number < -1 || symbol < -1 || symbol >= RONDO__SYMBOL_COUNT_MAX;
        value->dims[d] = (rondo__dimension){number, (int32_t)symbol};
    }
}

// All but the name.
static rondo_status read_type(reader *r, rondo__value *value) {
    value->dtype = read_dtype(r);
    value->item_dtype[0] = read_dtype(r);
    value->item_dtype[1] = read_dtype(r);
    read_dims(r, value);
    // Passes renumber the values around a body, where the number means nothing then.
    const int64_t origin = rondo__record_get_signed(r->in);
    value->origin = origin >= 0 && origin < (int64_t)r->around_count ? (int32_t)origin : -1;
    value->most = rondo__record_get_signed(r->in);
    RETURN_IF_ERROR(check(r, "a value is missing"));
    RETURN_IF_ERROR(read_tensor(r, 0, &value->constant));
    return read_tensor(r, 0, &value->labels);
}

// Room for what a count announces, but no more than a damaged one may take.
static size_t choose_room(size_t count) {
    enum { ROOM_MAX = 4096 };
    return count < ROOM_MAX ? count : ROOM_MAX;
}

static rondo_status read_values(reader *r) {
    const size_t count = rondo__record_get_count(r->in);
    rondo_program *program = r->program;
    const size_t room = choose_room(count);
    RETURN_IF_ERROR(RONDO__ARRAY_ROOM(program->values, program->value_capacity, room));
    RETURN_IF_ERROR(rondo__namemap_reserve(&program->names, room));
    for (size_t i = 0; i < count; ++i) {
        int32_t value = RONDO__VALUE_NONE;
        const char *name = rondo__record_get_text(r->in);
        RETURN_IF_ERROR(check(r, "a value has no name"));
        RETURN_IF_ERROR(rondo__program_add_value(r->program, name, &value));
        RETURN_IF_ERROR(read_type(r, &r->program->values[value]));
    }
    return check(r, "values are missing");
}

// ---- nodes ------------------------------------------------------------------------------------

static float read_float(reader *r) {
    const uint32_t bits = (uint32_t)rondo__record_get_most(r->in, UINT32_MAX);
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static double read_double(reader *r) {
    const uint64_t bits = rondo__record_get(r->in);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static rondo_status read_list(reader *r, rondo__attribute *attribute) {
    const size_t count = rondo__record_get_count(r->in);
    void *list = rondo__calloc(count + 1, sizeof(int64_t));
    if (list == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    attribute->ints = attribute->kind == RONDO__ATTRIBUTE_INTS ? list : NULL;
    attribute->floats = attribute->kind == RONDO__ATTRIBUTE_FLOATS ? list : NULL;
    attribute->strings = attribute->kind == RONDO__ATTRIBUTE_STRINGS ? list : NULL;
    for (size_t i = 0; i < count; ++i) {
        if (attribute->ints != NULL) {
            attribute->ints[i] = rondo__record_get_signed(r->in);
        } else if (attribute->floats != NULL) {
            attribute->floats[i] = read_float(r);
        } else {
            attribute->strings[i] = rondo__strdup(rondo__record_get_text(r->in));
            if (attribute->strings[i] == NULL) {
                return RONDO_STATUS_NO_MEMORY;
            }
        }
        attribute->count = i + 1;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_body(reader *r, rondo_program **out_body) {
    reader body = {.in = r->in,
                   .data = r->data,
                   .depth = r->depth + 1,
                   .around_count = r->program->value_count};
    if (body.depth > RONDO__BODY_DEPTH_MAX) {
        return fail(r, "bodies are nested too deep");
    }
    return read_whole(&body, out_body);
}

// What was read so far is freed by the caller.
static rondo_status read_attribute(reader *r, rondo__attribute *attribute) {
    attribute->name = rondo__strdup(rondo__record_get_text(r->in));
    attribute->kind = (rondo__attribute_kind)rondo__record_get_most(r->in, RONDO__ATTRIBUTE_BODY);
    RETURN_IF_ERROR(check(r, "an attribute is missing"));
    if (attribute->name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    switch (attribute->kind) {
        case RONDO__ATTRIBUTE_INT:
            attribute->int_value = rondo__record_get_signed(r->in);
            break;
        case RONDO__ATTRIBUTE_FLOAT:
            attribute->float_value = read_float(r);
            break;
        case RONDO__ATTRIBUTE_STRING:
            attribute->string_value = rondo__strdup(rondo__record_get_text(r->in));
            if (attribute->string_value == NULL) {
                return RONDO_STATUS_NO_MEMORY;
            }
            break;
        case RONDO__ATTRIBUTE_TENSOR:
            RETURN_IF_ERROR(read_tensor(r, 0, &attribute->tensor_value));
            break;
        case RONDO__ATTRIBUTE_BODY:
            RETURN_IF_ERROR(read_body(r, &attribute->body));
            break;
        default:
            RETURN_IF_ERROR(read_list(r, attribute));
            break;
    }
    return check(r, "an attribute is missing");
}

// What was read so far is the op's, also when it fails.
static rondo_status read_attributes(reader *r, rondo__op *op) {
    enum { BYTES_MIN = 3 };  // of one: a name, a kind and a value
    const size_t count = rondo__record_get_count(r->in);
    if (r->in->is_bad || count > (size_t)(r->in->past - r->in->at) / BYTES_MIN) {
        return fail(r, "attributes are missing");
    }
    op->attributes = count > 0 ? rondo__calloc(count, sizeof *op->attributes) : NULL;
    if (op->attributes == NULL && count > 0) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; ++i) {
        rondo__attribute *attribute = &op->attributes[i];
        rondo_status status = read_attribute(r, attribute);
        if (status == RONDO_STATUS_OK && rondo__op_find(op, attribute->name) != NULL) {
            status = fail(r, "an attribute is there twice");
        }
        op->attribute_count = i + 1;
        RETURN_IF_ERROR(status);
    }
    return RONDO_STATUS_OK;
}

// Value numbers, or NONE, to r->numbers from `first` on.
static rondo_status read_numbers(reader *r, size_t first, size_t *out_count) {
    const size_t count = rondo__record_get_count(r->in);
    RETURN_IF_ERROR(RONDO__ARRAY_RESERVE(r->numbers, r->number_capacity, first + count + 1));
    for (size_t i = 0; i < count; ++i) {
        const int64_t value = rondo__record_get_signed(r->in);
        if (value < RONDO__VALUE_NONE || value >= (int64_t)r->program->value_count) {
            return fail(r, "it names a value that there is not");
        }
        r->numbers[first + i] = (int32_t)value;
    }
    *out_count = count;
    return check(r, "a list of values is missing");
}

static rondo_status read_op(reader *r, rondo__op *op) {
    const char *domain = rondo__record_get_text(r->in);
    const char *type = rondo__record_get_text(r->in);
    op->name = rondo__strdup(rondo__record_get_text(r->in));
    op->opset = (int32_t)rondo__record_get_most(r->in, INT32_MAX);
    op->is_training = rondo__record_get_most(r->in, 1) != 0;
    RETURN_IF_ERROR(check(r, "a node is missing"));
    if (op->name == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    op->def = rondo__op_lookup(domain, type, op->opset);
    if (op->def == NULL) {
        return RONDO_FAIL(UNSUPPORTED, "unsupported: op %.40s%s%.40s version %d", domain,
                          domain[0] != '\0' ? "." : "", type, (int)op->opset);
    }
    return RONDO_STATUS_OK;
}

// Of inputs and outputs, which lie one behind the other in r->numbers.
typedef struct node_counts {
    size_t inputs, outputs, explicit_inputs;
} node_counts;

static rondo_status read_wiring(reader *r, node_counts *counts) {
    RETURN_IF_ERROR(read_numbers(r, 0, &counts->inputs));
    counts->explicit_inputs = (size_t)rondo__record_get_most(r->in, counts->inputs);
    RETURN_IF_ERROR(read_numbers(r, counts->inputs, &counts->outputs));
    return check(r, "a node is cut");
}

static rondo_status finish_node(reader *r, rondo__op *op, const rondo__node *marks) {
    node_counts counts = {0};
    RETURN_IF_ERROR(read_attributes(r, op));
    RETURN_IF_ERROR(read_wiring(r, &counts));
    // A program keeps no inputs that ONNX names as absent at the end; what an op needs is looked
    // at when it runs.
    const size_t count =
        counts.explicit_inputs > op->def->input_min ? counts.explicit_inputs : op->def->input_min;
    RETURN_IF_ERROR(rondo__op_check_counts(op->def, count, counts.outputs));
    RETURN_IF_ERROR(rondo__op_check(op));
    RETURN_IF_ERROR(rondo__program_add_node(r->program, op, r->numbers, counts.inputs,
                                            counts.explicit_inputs, r->numbers + counts.inputs,
                                            counts.outputs));
    rondo__node *node = &r->program->nodes[r->program->node_count - 1];
    node->precision = marks->precision;
    node->place = marks->place;
    return RONDO_STATUS_OK;
}

static void free_bodies(rondo__op *op) {
    for (size_t i = 0; i < op->attribute_count; ++i) {
        rondo_program_destroy(op->attributes[i].body);
    }
}

static rondo_status read_node(reader *r) {
    rondo__op op = {0};
    rondo__node marks = {0};
    rondo_status status = read_op(r, &op);
    if (status == RONDO_STATUS_OK) {
        marks.precision = (uint8_t)rondo__record_get_most(r->in, RONDO__PRECISION_GRADIENT);
        marks.place.place =
            (uint8_t)rondo__record_get_most(r->in, RONDO__PLACE_GPU_0 + RONDO__PLACE_GPU_MAX - 1);
        marks.place.by = (uint8_t)rondo__record_get_most(r->in, RONDO__PLACED_BY_OPTION);
        status = finish_node(r, &op, &marks);
    }
    free_bodies(&op);
    rondo__op_deinit(&op);  // zeroed where the program has it
    return status;
}

// ---- ports ------------------------------------------------------------------------------------

static rondo_status add_ports(reader *r, const int32_t *inputs, size_t input_count,
                              size_t declared_count) {
    for (size_t i = 0; i < input_count; ++i) {
        if (inputs[i] < 0) {
            return fail(r, "an input has no value");
        }
        RETURN_IF_ERROR(i < declared_count ? rondo__program_add_input(r->program, inputs[i])
                                           : rondo__program_add_captured(r->program, inputs[i]));
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_inputs(reader *r) {
    size_t count = 0;
    RETURN_IF_ERROR(read_numbers(r, 0, &count));
    const size_t declared = (size_t)rondo__record_get_most(r->in, count);
    return r->in->is_bad || (r->depth == 0 && declared != count)
               ? fail(r, "it has inputs that nobody declares")
               : add_ports(r, r->numbers, count, declared);
}

static rondo_status read_outputs(reader *r) {
    size_t count = 0;
    RETURN_IF_ERROR(read_numbers(r, 0, &count));
    for (size_t i = 0; i < count; ++i) {
        RETURN_IF_ERROR(r->numbers[i] >= 0 ? rondo__program_add_output(r->program, r->numbers[i])
                                           : fail(r, "an output has no value"));
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_optionals(reader *r) {
    const size_t count = rondo__record_get_count(r->in);
    for (size_t i = 0; i < count; ++i) {
        rondo__value declared = {0};
        const int64_t value = rondo__record_get_signed(r->in);
        (void)rondo__record_get_text(r->in);  // the constant's name is used
        rondo_status status = read_type(r, &declared);
        if (status == RONDO_STATUS_OK &&
            (value < 0 || value >= (int64_t)r->program->value_count || r->depth > 0 ||
             declared.constant.dtype != RONDO_DTYPE_NONE ||
             r->program->values[value].constant.dtype == RONDO_DTYPE_NONE)) {
            status = fail(r, "an input's default is no constant");
        }
        if (status == RONDO_STATUS_OK) {
            status = rondo__program_add_optional(r->program, (int32_t)value, &declared);
        }
        rondo_tensor_deinit(&declared.constant);
        rondo_tensor_deinit(&declared.labels);
        RETURN_IF_ERROR(status);
    }
    return check(r, "inputs with a default are missing");
}

static bool is_listed(const int32_t *values, size_t count, int64_t value) {
    for (size_t i = 0; i < count; ++i) {
        if (values[i] == value) {
            return true;
        }
    }
    return false;
}

// Whether a tensor is what an input is declared as. Extents may be open: a snapshot's variables
// start with the values that they had.
static bool fits(const rondo_tensor *tensor, const rondo__value *declared) {
    bool is_same = tensor->dtype == declared->dtype &&
                   (!declared->has_shape || tensor->shape.rank == declared->rank);
    for (int32_t d = 0; is_same && declared->has_shape && d < declared->rank; ++d) {
        const int64_t extent = declared->dims[d].number;
        is_same = extent < 0 || tensor->shape.extent[d] == extent;
    }
    return is_same;
}

static rondo_status add_variable(reader *r, int64_t value, int64_t update,
                                 rondo__variable *variable) {
    rondo_program *program = r->program;
    const bool has_first = variable->first.dtype != RONDO_DTYPE_NONE;
    if (r->depth > 0 || !is_listed(program->inputs, program->input_count, value) ||
        (update != RONDO__VALUE_NONE &&
         !is_listed(program->outputs, program->output_count, update)) ||
        has_first != (variable->start.kind == RONDO_START_TENSOR) ||
        (has_first && !fits(&variable->first, &program->values[value]))) {
        return fail(r, "a variable is none");
    }
    variable->value = (int32_t)value;
    variable->update = (int32_t)update;
    return rondo__program_add_variable(program, variable);
}

static rondo_status read_variables(reader *r) {
    const size_t count = rondo__record_get_count(r->in);
    for (size_t i = 0; i < count; ++i) {
        rondo__variable variable = {0};
        const int64_t value = rondo__record_get_signed(r->in);
        const int64_t update = rondo__record_get_signed(r->in);
        variable.start.kind = (rondo_start_kind)rondo__record_get_most(r->in, RONDO_START_TENSOR);
        variable.start.a = read_double(r);
        variable.start.b = read_double(r);
        variable.start.seed = rondo__record_get(r->in);
        variable.start.fan_in = rondo__record_get(r->in);
        variable.start.fan_out = rondo__record_get(r->in);
        rondo_status status = read_tensor(r, 0, &variable.first);
        if (status == RONDO_STATUS_OK) {
            status = add_variable(r, value, update, &variable);
        }
        rondo_tensor_deinit(&variable.first);
        RETURN_IF_ERROR(status);
    }
    return check(r, "variables are missing");
}

// ---- the program ------------------------------------------------------------------------------

static rondo_status read_symbols(reader *r) {
    const size_t count = rondo__record_get_count(r->in);
    if (count > RONDO__SYMBOL_COUNT_MAX) {
        return fail(r, "it has too many symbols");
    }
    for (size_t i = 0; i < count; ++i) {
        int32_t symbol = -1;
        const char *name = rondo__record_get_text(r->in);
        const int64_t extent = rondo__record_get_signed(r->in);
        RETURN_IF_ERROR(check(r, "symbols are missing"));
        RETURN_IF_ERROR(rondo__program_add_symbol(r->program, name, &symbol));
        if (symbol != (int32_t)i || extent < -1) {
            return fail(r, "a symbol is there twice");
        }
        r->program->symbols[symbol].extent = extent;
    }
    return RONDO_STATUS_OK;
}

static rondo_status read_metadata(reader *r) {
    size_t byte_count = 0;
    const char *bytes = rondo__record_get_bytes(r->in, &byte_count);
    size_t zeros = 0;
    RETURN_IF_ERROR(check(r, "its metadata is missing"));
    for (size_t i = 0; i < byte_count; ++i) {
        zeros += bytes[i] == '\0' ? 1 : 0;
    }
    if (byte_count == 0) {
        return RONDO_STATUS_OK;
    }
    if (bytes[byte_count - 1] != '\0' || zeros % 2 != 0) {
        return fail(r, "its metadata is cut");
    }
    r->program->metadata = rondo__malloc(byte_count);
    if (r->program->metadata == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    memcpy(r->program->metadata, bytes, byte_count);
    r->program->metadata_bytes = byte_count;
    return RONDO_STATUS_OK;
}

// Symbols that values name are there. Bodies have those of the program around.
static rondo_status check_symbols(const reader *r) {
    const rondo_program *program = r->program;
    for (size_t v = 0; v < program->value_count && r->depth == 0; ++v) {
        const rondo__value *value = &program->values[v];
        for (int32_t d = 0; d < value->rank; ++d) {
            if (value->dims[d].symbol >= (int32_t)program->symbol_count) {
                return fail(r, "it names a symbol that there is not");
            }
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status fill_program(reader *r) {
    r->program->place_revision = rondo__record_get(r->in);
    r->program->file_bytes = rondo__record_get(r->in);
    RETURN_IF_ERROR(read_metadata(r));
    RETURN_IF_ERROR(read_symbols(r));
    RETURN_IF_ERROR(read_values(r));
    RETURN_IF_ERROR(check_symbols(r));
    const size_t node_count = rondo__record_get_count(r->in);
    RETURN_IF_ERROR(
        RONDO__ARRAY_ROOM(r->program->nodes, r->program->node_capacity, choose_room(node_count)));
    for (size_t i = 0; i < node_count; ++i) {
        RETURN_IF_ERROR(read_node(r));
    }
    RETURN_IF_ERROR(read_inputs(r));
    RETURN_IF_ERROR(read_outputs(r));
    RETURN_IF_ERROR(read_optionals(r));
    return read_variables(r);
}

static rondo_status read_whole(reader *r, rondo_program **out_program) {
    const char *name = rondo__record_get_text(r->in);
    RETURN_IF_ERROR(check(r, "it has no name"));
    RETURN_IF_ERROR(rondo__program_create(name, &r->program));
    rondo_status status = fill_program(r);
    rondo__free(r->numbers);
    if (status == RONDO_STATUS_OK && r->depth == 0) {
        status = rondo__program_verify(r->program);
    }
    if (status != RONDO_STATUS_OK) {
        rondo_program_destroy(r->program);
        r->program = NULL;
        return status;
    }
    *out_program = r->program;
    return RONDO_STATUS_OK;
}

rondo_status rondo__program_read(rondo__record *record, const rondo__saved_data *data,
                                 rondo_program **out_program) {
    reader r = {.in = record, .data = data};
    *out_program = NULL;
    return read_whole(&r, out_program);
}
