// executor/state/start_states.c — see start_states.h.
// SPDX-License-Identifier: Apache-2.0
#include "executor/state/start_states.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/memory.h"
#include "op/half.h"
#include "op/support.h"
#include "program/edit.h"
#include "rondo/random.h"

static const rondo__variable *find_variable(const rondo_executor *executor,
                                            const rondo__state *state) {
    const rondo_program *source = executor->main.source;
    const rondo__variable *variable =
        rondo__program_find_variable(source, source->inputs[state->input]);
    return variable != NULL && variable->start.kind != RONDO_START_NONE ? variable : NULL;
}

bool rondo__state_has_start(const rondo_executor *executor, const rondo__state *state) {
    return find_variable(executor, state) != NULL;
}

static const rondo__value *get_value(const rondo_executor *executor, const rondo__state *state) {
    const rondo_program *source = executor->main.source;
    return &source->values[source->inputs[state->input]];
}

rondo_status rondo__state_get_feed(const rondo_executor *executor, const rondo__state *state,
                                   rondo_tensor *out_feed) {
    const rondo__value *value = get_value(executor, state);
    if (state->is_lost) {
        return RONDO_FAIL(STATE,
                          "a run that failed may have written a part of \"%.60s\", which is kept "
                          "from run to run; set it, feed it, or reset all variables",
                          value->name);
    }
    *out_feed = state->value.tensor;
    if (out_feed->dtype == RONDO_DTYPE_NONE && find_variable(executor, state) != NULL) {
        *out_feed = (rondo_tensor){.dtype = value->dtype, .device = executor->device};
        (void)rondo__value_get_shape(value, &out_feed->shape);
    }
    return RONDO_STATUS_OK;
}

// ---- numbers that are drawn -------------------------------------------------------------------

typedef struct fans {
    double in, out;
} fans;

static fans get_fans(const rondo_start *start, const rondo_shape *shape) {
    const double window =
        shape->rank > 2 ? (double)rondo__shape_multiply(shape, 2, shape->rank) : 1;
    fans found = {(double)rondo_shape_get_count(shape), (double)rondo_shape_get_count(shape)};
    if (shape->rank == 2) {
        found = (fans){(double)shape->extent[0], (double)shape->extent[1]};
    } else if (shape->rank > 2) {
        found = (fans){(double)shape->extent[1] * window, (double)shape->extent[0] * window};
    }
    found.in = start->fan_in > 0 ? (double)start->fan_in : found.in;
    found.out = start->fan_out > 0 ? (double)start->fan_out : found.out;
    return found;
}

// A distribution: between a and b, or of mean a and deviation b.
typedef struct distribution {
    bool is_normal;
    double a, b;
} distribution;

static distribution get_distribution(const rondo_start *start, const rondo_shape *shape) {
    const fans f = get_fans(start, shape);
    const double gain = start->a > 0 ? start->a : 1;
    const bool is_he =
        start->kind == RONDO_START_HE_UNIFORM || start->kind == RONDO_START_HE_NORMAL;
    const double fan = is_he ? f.in : f.in + f.out;
    const double deviation = fan > 0 ? gain * sqrt(2 / fan) : 0;
    switch (start->kind) {
        case RONDO_START_UNIFORM:
        case RONDO_START_NORMAL:
            return (distribution){start->kind == RONDO_START_NORMAL, start->a, start->b};
        case RONDO_START_XAVIER_NORMAL:
        case RONDO_START_HE_NORMAL:
            return (distribution){true, 0, deviation};
        default:
            return (distribution){false, -deviation * sqrt(3), deviation * sqrt(3)};
    }
}

static uint64_t get_seed(const rondo_executor *executor, const rondo_start *start,
                         const char *name) {
    return start->seed != 0 ? start->seed
                            : rondo__hash64(executor->options.seed, name, strlen(name));
}

static rondo_status draw(rondo__unit *unit, const rondo_start *start, const char *name,
                         const rondo_tensor *to) {
    const distribution d = get_distribution(start, &to->shape);
    const size_t count = (size_t)rondo_shape_get_count(&to->shape);
    rondo_generator *generator = NULL;
    RETURN_IF_ERROR(rondo_generator_create(unit->executor->device,
                                           get_seed(unit->executor, start, name), &generator));
    rondo_status status =
        d.is_normal
            ? rondo_random_normal(generator, unit->stream, to->dtype, to->data, count, d.a, d.b)
            : rondo_random_uniform(generator, unit->stream, to->dtype, to->data, count, d.a, d.b);
    rondo_generator_release(generator);  // waits for what was drawn
    return status;
}

// ---- constants --------------------------------------------------------------------------------

// The bits of an element of a type that rondo_builder_add_variable lets through.
static uint64_t get_bits(rondo_dtype dtype, double number) {
    uint64_t bits = 0;
    uint16_t half = 0;
    const float single = (float)number;
    switch (dtype) {
        case RONDO_DTYPE_F64:
            memcpy(&bits, &number, sizeof number);
            return bits;
        case RONDO_DTYPE_F32:
            memcpy(&bits, &single, sizeof single);
            return bits;
        case RONDO_DTYPE_F16:
        case RONDO_DTYPE_BF16:
            rondo__half_from_float_array(dtype, &single, &half, 1);
            return half;
        case RONDO_DTYPE_BOOL:
            return number != 0;
        default:
            return number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
    }
}

// Stream fills know elements of up to four bytes; others are zeros, or are copied.
static rondo_status fill(rondo__unit *unit, double number, const rondo_tensor *to) {
    const size_t bytes = rondo_dtype_get_bytes(to->dtype);
    const size_t count = (size_t)rondo_shape_get_count(&to->shape);
    const uint64_t bits = get_bits(to->dtype, number);
    if (bytes <= 4 || bits == 0) {
        const size_t width = bits == 0 ? 1 : bytes;
        return rondo_stream_fill(unit->stream, to->data, (uint32_t)bits, (uint32_t)width,
                                 count * bytes / width);
    }
    rondo_tensor all = {0};
    RETURN_IF_ERROR(rondo_tensor_init(to->dtype, &to->shape, &all));
    for (size_t i = 0; i < count; ++i) {
        memcpy((char *)all.data + i * bytes, &bits, bytes);
    }
    rondo_status status = rondo_tensor_copy(unit->stream, &all, to);
    const rondo_status waited = rondo_stream_synchronize(unit->stream);
    rondo_tensor_deinit(&all);
    return status != RONDO_STATUS_OK ? status : waited;
}

// ---- both -------------------------------------------------------------------------------------

static rondo_status put_start(rondo__unit *unit, const rondo__state *state,
                              const rondo__variable *variable) {
    const rondo_tensor *to = &state->value.tensor;
    if (rondo_shape_get_count(&to->shape) == 0) {
        return RONDO_STATUS_OK;
    }
    return variable->start.kind == RONDO_START_CONSTANT
               ? fill(unit, variable->start.a, to)
               : draw(unit, &variable->start, get_value(unit->executor, state)->name, to);
}

rondo_status rondo__state_start(rondo__unit *unit, rondo__state *state) {
    const rondo__variable *variable = find_variable(unit->executor, state);
    const rondo__value *value = get_value(unit->executor, state);
    if (variable == NULL) {
        return RONDO_FAIL(STATE, "the variable \"%.60s\" has no start; set or feed it",
                          value->name);
    }
    if (variable->start.kind == RONDO_START_TENSOR) {
        return rondo__state_set(unit, state, &variable->first);
    }
    rondo_shape shape = {0};
    (void)rondo__value_get_shape(value, &shape);
    RETURN_IF_ERROR(rondo__state_fit(unit, state, value->dtype, &shape));
    state->is_lost = true;
    rondo__states_change(unit->executor);
    RETURN_IF_ERROR(put_start(unit, state, variable));
    state->is_lost = false;
    return RONDO_STATUS_OK;
}
