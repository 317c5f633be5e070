// kernel/host/product/host_recurrent.c — RNN, GRU and LSTM on f32 in their usual form: constant
// weights, the default activations, full sequences, no clipping, no peepholes. Others take the
// reference.
//
// For each direction the products of all time steps with W are one matrix product, done first:
//
//   from_x [seq * batch, gates * hidden] = X x W' + biases
//
// Then each step adds h x R' for its batch and applies the gates row by row with vector loops. The
// two directions of a bidirectional layer run on two threads.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "kernel/host/host_families.h"
#include "kernel/host/host_kernel.h"
#include "kernel/host/host_threads.h"
#include "kernel/host/product/packed_matrix.h"
#include "op/recurrent/recurrent.h"

typedef enum cell_kind { CELL_RNN, CELL_GRU, CELL_LSTM } cell_kind;

// One direction's weights.
typedef struct direction {
    bool is_reverse;
    rondo__packed_matrix w;      // [input, gates * hidden]
    rondo__packed_matrix r;      // [hidden, ...]: all gates; GRU: z and r only
    rondo__packed_matrix r_new;  // GRU: [hidden, hidden] of the new state
    float *bias;                 // [gates * hidden], what is added before any gate
    float *bias_new;             // GRU, linear before reset: [hidden], inside the reset
} direction;

typedef struct recurrent_kernel {
    rondo__host_kernel head;
    const rondo__simd *simd;
    cell_kind cell;
    bool is_linear_before_reset;
    bool is_parallel;         // directions
    int64_t sharing_threads;  // products of directions that are not: among how many threads
    int64_t seq, batch, input, hidden, gates;
    int32_t direction_count;
    direction directions[2];
    size_t direction_floats;  // workspace of one direction
} recurrent_kernel;

// ---- running ----------------------------------------------------------------------------------

// y [m, n] = a [m, k] x matrix + bias + z.
typedef struct gate_product {
    const rondo__packed_matrix *matrix;
    int64_t m;
    const float *a, *bias, *z;
    float *y;
    int64_t row;  // elements from one row of z or y to the next
    bool is_backward;
} gate_product;

static void multiply_panels(void *data, int64_t first, int64_t end) {
    const gate_product *p = data;
    const int64_t width = p->matrix->simd->panel_columns;
    for (int64_t i = first; i < end; ++i) {
        const int64_t column = width * (p->is_backward ? end - 1 - (i - first) : i);
        const int64_t rest = p->matrix->n - column;
        const rondo__packed_matrix panel = {
            .simd = p->matrix->simd,
            .k = p->matrix->k,
            .n = rest < width ? rest : width,
            .panels = p->matrix->panels + column * p->matrix->k,
        };
        rondo__packed_multiply(&panel, p->a, panel.k, p->m,
                               p->bias != NULL ? p->bias + column : NULL,
                               p->z != NULL ? p->z + column : NULL, p->row, p->y + column, p->row);
    }
}

static void multiply(const recurrent_kernel *kernel, gate_product *product) {
    const int64_t width = kernel->simd->panel_columns, threads = kernel->sharing_threads;
    const int64_t panels = (product->matrix->n + width - 1) / width;
    product->row = kernel->gates * kernel->hidden;
    if (threads == 1) {
        rondo__packed_multiply(product->matrix, product->a, product->matrix->k, product->m,
                               product->bias, product->z, product->row, product->y, product->row);
        return;
    }
    rondo__workers_loop(panels, (panels + threads - 1) / threads, multiply_panels, product);
}

// At each second step backwards: where the weights are a little more than the cache holds, what was
// read last is there still.
static void multiply_state(const recurrent_kernel *kernel, gate_product product, int64_t step) {
    product.m = kernel->batch;
    product.is_backward = step % 2 != 0;
    multiply(kernel, &product);
}

// One time step of a GRU for the whole batch: h = (1 - z) * new + z * h.
static void step_gru(const recurrent_kernel *kernel, const direction *way, int64_t step,
                     const float *from_x, float *gates, float *work, float *h) {
    const rondo__simd *simd = kernel->simd;
    const int64_t hidden = kernel->hidden, batch = kernel->batch;
    const int64_t row = kernel->gates * hidden;
    multiply_state(kernel, (gate_product){&way->r, .a = h, .z = from_x, .y = gates}, step);
    for (int64_t n = 0; n < batch; ++n) {
        float *now = gates + n * row;
        simd->unary[RONDO__SCALAR_Sigmoid](now, now, 2 * hidden, 0.0f, 0.0f);
        if (!kernel->is_linear_before_reset) {
            simd->binary[RONDO__SCALAR_Mul](now + hidden, h + n * hidden, work + n * hidden,
                                            hidden);
        }
    }
    float *fresh = gates + 2 * hidden;  // [batch, hidden], rows `row` apart
    if (kernel->is_linear_before_reset) {
        multiply_state(
            kernel, (gate_product){&way->r_new, .a = h, .bias = way->bias_new, .y = fresh}, step);
    } else {
        multiply_state(kernel,
                       (gate_product){&way->r_new, .a = work, .z = from_x + 2 * hidden, .y = fresh},
                       step);
    }
    for (int64_t n = 0; n < batch; ++n) {
        float *z = gates + n * row, *state = h + n * hidden, *now = fresh + n * row;
        if (kernel->is_linear_before_reset) {
            simd->binary[RONDO__SCALAR_Mul](z + hidden, now, now, hidden);
            simd->binary[RONDO__SCALAR_Add](from_x + n * row + 2 * hidden, now, now, hidden);
        }
        simd->unary[RONDO__SCALAR_Tanh](now, now, hidden, 0.0f, 0.0f);
        simd->binary[RONDO__SCALAR_Sub](state, now, state, hidden);
        simd->binary[RONDO__SCALAR_Mul](z, state, state, hidden);
        simd->binary[RONDO__SCALAR_Add](now, state, state, hidden);
    }
}

static void run_direction(const recurrent_kernel *kernel, int32_t index, const void *const *inputs,
                          void *const *outputs, float *workspace) {
    const direction *way = &kernel->directions[index];
    const int64_t seq = kernel->seq, batch = kernel->batch, hidden = kernel->hidden;
    const int64_t row = kernel->gates * hidden;
    const int64_t state_floats = batch * hidden;
    float *from_x = workspace;
    float *gates = from_x + seq * batch * row;
    float *work = gates + batch * row;
    float *h = work + state_floats;
    float *c = h + state_floats;
    const float *initial_h = kernel->head.input_count > 5 ? inputs[5] : NULL;
    const float *initial_c = kernel->head.input_count > 6 ? inputs[6] : NULL;
    memset(h, 0, 2 * (size_t)state_floats * sizeof(float));
    if (initial_h != NULL) {
        memcpy(h, initial_h + index * state_floats, (size_t)state_floats * sizeof(float));
    }
    if (initial_c != NULL) {
        memcpy(c, initial_c + index * state_floats, (size_t)state_floats * sizeof(float));
    }
    gate_product all = {&way->w, .m = seq * batch, .a = inputs[0], .bias = way->bias, .y = from_x};
    multiply(kernel, &all);
    for (int64_t i = 0; i < seq; ++i) {
        const int64_t t = way->is_reverse ? seq - 1 - i : i;
        const float *now = from_x + t * batch * row;
        if (kernel->cell == CELL_GRU) {
            step_gru(kernel, way, i, now, gates, work, h);
        } else {
            multiply_state(kernel, (gate_product){&way->r, .a = h, .z = now, .y = gates}, i);
            for (int64_t n = 0; n < batch; ++n) {
                if (kernel->cell == CELL_LSTM) {
                    kernel->simd->lstm_step(gates + n * row, h + n * hidden, c + n * hidden,
                                            hidden);
                } else {
                    kernel->simd->unary[RONDO__SCALAR_Tanh](gates + n * row, h + n * hidden, hidden,
                                                            0.0f, 0.0f);
                }
            }
        }
        if (outputs[0] != NULL) {
            memcpy((float *)outputs[0] + (t * kernel->direction_count + index) * state_floats, h,
                   (size_t)state_floats * sizeof(float));
        }
    }
    for (uint32_t i = 1; i < kernel->head.output_count; ++i) {
        if (outputs[i] != NULL) {
            memcpy((float *)outputs[i] + index * state_floats, i == 1 ? h : c,
                   (size_t)state_floats * sizeof(float));
        }
    }
}

typedef struct recurrent_run {
    const recurrent_kernel *kernel;
    const void *const *inputs;
    void *const *outputs;
    float *workspace;
} recurrent_run;

static void run_directions(void *data, int64_t first, int64_t end) {
    const recurrent_run *run = data;
    for (int64_t i = first; i < end; ++i) {
        run_direction(run->kernel, (int32_t)i, run->inputs, run->outputs,
                      run->workspace + (size_t)i * run->kernel->direction_floats);
    }
}

static rondo_status run_recurrent(rondo__host_kernel *head, const void *const *inputs,
                                  void *const *outputs, void *workspace) {
    const recurrent_kernel *kernel = (const recurrent_kernel *)head;
    recurrent_run run = {kernel, inputs, outputs, workspace};
    rondo__workers_loop(kernel->direction_count, kernel->is_parallel ? 1 : kernel->direction_count,
                        run_directions, &run);
    return RONDO_STATUS_OK;
}

static void deinit_recurrent(rondo__host_kernel *head) {
    recurrent_kernel *kernel = (recurrent_kernel *)head;
    for (int32_t i = 0; i < kernel->direction_count; ++i) {
        direction *way = &kernel->directions[i];
        rondo__free(way->bias);
        rondo__free(way->bias_new);
    }
}

// ---- preparing --------------------------------------------------------------------------------

static bool is_usual(const rondo__kernel_request *request) {
    const rondo__op *op = request->op;
    for (size_t i = 1; i < 4; ++i) {
        if (rondo__host_has_input(request, i) && request->inputs[i].constant == NULL) {
            return false;
        }
    }
    return request->inputs[0].dtype == RONDO_DTYPE_F32 && !rondo__host_has_input(request, 4) &&
           !rondo__host_has_input(request, 7) && rondo__recurrent_has_usual_functions(op) &&
           rondo__op_find(op, "clip") == NULL && rondo__op_get_int(op, "layout", 0) == 0 &&
           rondo__op_get_int(op, "input_forget", 0) == 0;
}

// Joins both halves of B where both are added before the gate.
static rondo_status init_biases(const recurrent_kernel *kernel, const float *b, direction *way) {
    const int64_t hidden = kernel->hidden;
    const int64_t rows = kernel->gates * hidden;
    way->bias = rondo__calloc((size_t)rows, sizeof(float));
    way->bias_new = rondo__calloc((size_t)hidden, sizeof(float));
    if (way->bias == NULL || way->bias_new == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    for (int64_t i = 0; b != NULL && i < rows; ++i) {
        const bool is_inside = kernel->is_linear_before_reset && i >= 2 * hidden;
        way->bias[i] = b[i] + (is_inside ? 0.0f : b[rows + i]);
        if (is_inside) {
            way->bias_new[i - 2 * hidden] = b[rows + i];
        }
    }
    return RONDO_STATUS_OK;
}

static rondo_status init_direction(const rondo__kernel_request *request,
                                   const recurrent_kernel *kernel, int64_t index, direction *way) {
    const int64_t hidden = kernel->hidden, input = kernel->input;
    const int64_t rows = kernel->gates * hidden;
    const int64_t first_rows = kernel->cell == CELL_GRU ? 2 * hidden : rows;
    const rondo__matrix_places w = {.first = index * rows * input,
                                    .row = 1,
                                    .column = input,
                                    .count = 1,
                                    .k = input,
                                    .n = rows};
    const rondo__matrix_places r = {.first = index * rows * hidden,
                                    .row = 1,
                                    .column = hidden,
                                    .count = 1,
                                    .k = hidden,
                                    .n = first_rows};
    const float *b = rondo__host_has_input(request, 3)
                         ? (const float *)request->inputs[3].constant->data + index * 2 * rows
                         : NULL;
    RETURN_IF_ERROR(
        rondo__packed_matrix_init(&way->w, request->weights, request->inputs[1].constant, &w));
    RETURN_IF_ERROR(
        rondo__packed_matrix_init(&way->r, request->weights, request->inputs[2].constant, &r));
    if (kernel->cell == CELL_GRU) {
        rondo__matrix_places r_new = r;
        r_new.first += first_rows * hidden;
        r_new.n = hidden;
        RETURN_IF_ERROR(rondo__packed_matrix_init(&way->r_new, request->weights,
                                                  request->inputs[2].constant, &r_new));
    }
    return init_biases(kernel, b, way);
}

// Directions go side by side where there are as many as threads and each keeps its weights in a
// processor's cache; otherwise one after the other, each product shared.
static void share_work(recurrent_kernel *kernel, int64_t row) {
    const double step = (double)kernel->batch * (double)row * (double)kernel->hidden;
    const double all = (double)kernel->seq * (double)kernel->batch * (double)row *
                       (double)(kernel->input + kernel->hidden);
    const int64_t bytes = row * kernel->hidden * (int64_t)sizeof(float);
    const int64_t threads = rondo__host_get_thread_count();
    const bool shares_steps =
        step > RONDO__HOST_CHUNK_MULTIPLY_ADDS &&
        (kernel->direction_count < threads || bytes > rondo__panels_get_cache_bytes());
    kernel->is_parallel = !shares_steps && all > 2 * RONDO__HOST_CHUNK_MULTIPLY_ADDS;
    kernel->sharing_threads = shares_steps ? threads : 1;
}

rondo_status rondo__host_prepare_recurrent(const rondo__kernel_request *request,
                                           rondo__kernel **out_kernel) {
    const rondo__op *op = request->op;
    if (!is_usual(request)) {
        return RONDO_STATUS_UNSUPPORTED;
    }
    rondo__host_kernel *head = rondo__host_kernel_create(request, sizeof(recurrent_kernel), "simd",
                                                         run_recurrent, deinit_recurrent);
    if (head == NULL) {
        return RONDO_STATUS_NO_MEMORY;
    }
    recurrent_kernel *kernel = (recurrent_kernel *)head;
    const char *direction_name = rondo__op_get_string(op, "direction", "forward");
    kernel->simd = rondo__simd_get();
    kernel->cell = op->def->id == RONDO__OP_LSTM  ? CELL_LSTM
                   : op->def->id == RONDO__OP_GRU ? CELL_GRU
                                                  : CELL_RNN;
    kernel->gates = kernel->cell == CELL_LSTM ? 4 : kernel->cell == CELL_GRU ? 3 : 1;
    kernel->is_linear_before_reset =
        kernel->cell == CELL_GRU && rondo__op_get_int(op, "linear_before_reset", 0) != 0;
    kernel->seq = request->inputs[0].shape.extent[0];
    kernel->batch = request->inputs[0].shape.extent[1];
    kernel->input = request->inputs[0].shape.extent[2];
    kernel->hidden = request->inputs[2].shape.extent[2];
    kernel->direction_count = (int32_t)request->inputs[1].shape.extent[0];
    kernel->directions[0].is_reverse = strcmp(direction_name, "reverse") == 0;
    kernel->directions[1].is_reverse = true;
    rondo_status status = RONDO_STATUS_OK;
    for (int32_t i = 0; status == RONDO_STATUS_OK && i < kernel->direction_count; ++i) {
        status = init_direction(request, kernel, i, &kernel->directions[i]);
    }
    if (status != RONDO_STATUS_OK) {
        rondo__kernel_destroy(&head->base);
        return status;
    }
    const int64_t row = kernel->gates * kernel->hidden;
    const int64_t floats = kernel->seq * kernel->batch * row + kernel->batch * row +
                           3 * kernel->batch * kernel->hidden;
    kernel->direction_floats = (size_t)(floats + 15) / 16 * 16;
    share_work(kernel, row);
    head->base.workspace_bytes =
        (size_t)kernel->direction_count * kernel->direction_floats * sizeof(float);
    *out_kernel = &head->base;
    return RONDO_STATUS_OK;
}
