// tokens.cu - what stands around attention in networks of tokens: RotaryEmbedding, TensorScatter,
// LinearAttention and CausalConvWithState.
// SPDX-License-Identifier: Apache-2.0
#include "rondo_types.cuh"

#ifndef RONDO_T
#define RONDO_T float
#endif
typedef RONDO_T T;
#ifndef RONDO_S
#define RONDO_S float
#endif
typedef RONDO_S S;  // of LinearAttention's states
#ifndef INTERLEAVED
#define INTERLEAVED 0  // pairs that turn lie side by side
#endif
#ifndef WIDTH
#define WIDTH 64  // of a key
#endif

// ---- RotaryEmbedding --------------------------------------------------------------------------

struct rotary_arguments {
    const T *x;
    const T *cosines;  // a row for each place, or for each number that a place may have
    const T *sines;
    const i64 *ids;  // NULL: places are counted
    T *y;
    i64 batches, places, heads, size, turned, rows;
    i64 batch_step, place_step, head_step;
    i64 has_one_id;  // that of the first place
    faults told;
};

// A thread turns a pair, or copies an element behind them.
extern "C" __global__ void __launch_bounds__(256) rotary(const rotary_arguments a) {
    take_turn();
    const i64 pairs = a.turned / 2, works = a.size - pairs;
    const i64 count = a.batches * a.places * a.heads * works;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < count; n += (i64)gridDim.x * 256) {
        const i64 i = n % works, head = n / works % a.heads, at = n / works / a.heads;
        const i64 base = at / a.places * a.batch_step + at % a.places * a.place_step +
                         head * a.head_step;
        if (i >= pairs) {
            a.y[base + pairs + i] = a.x[base + pairs + i];
            continue;
        }
        i64 row = at;
        if (a.ids != 0) {
            row = a.has_one_id ? a.ids[0] + at % a.places : a.ids[at];
            if (row < 0 || row >= a.rows) {
                a.told.tell();
                row = row < 0 ? 0 : a.rows - 1;
            }
        }
        const i64 first = base + (INTERLEAVED ? 2 * i : i);
        const i64 second = INTERLEAVED ? first + 1 : first + pairs;
        const float c = convert<float>(a.cosines[row * pairs + i]);
        const float s = convert<float>(a.sines[row * pairs + i]);
        const float x = convert<float>(a.x[first]), z = convert<float>(a.x[second]);
        a.y[first] = convert<T>(c * x - s * z);
        a.y[second] = convert<T>(s * x + c * z);
    }
}

// ---- TensorScatter ----------------------------------------------------------------------------

struct cache_arguments {
    const T *past;
    const T *update;
    const i64 *places;  // where each batch begins; NULL: at 0
    T *y;
    i64 lines, lines_of_batch, most, steps, inner;
    i64 is_circular;
    faults told;
};

// Where y is the past, only what is new is written; otherwise each element once.
extern "C" __global__ void __launch_bounds__(256) cache_write(const cache_arguments a) {
    take_turn();
    const bool is_in_place = a.past == a.y;
    const i64 rows = is_in_place ? a.steps : a.most, count = a.lines * rows * a.inner;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < count; n += (i64)gridDim.x * 256) {
        const i64 column = n % a.inner, line = n / a.inner / rows;
        i64 row = n / a.inner % rows;
        i64 begin = a.places != 0 ? a.places[line / a.lines_of_batch] : 0;
        if (begin < 0 || (!a.is_circular && begin > a.most - a.steps)) {
            a.told.tell();
            begin = 0;
        }
        begin %= a.most;
        i64 step = row;
        if (is_in_place) {
            row = begin + step < a.most ? begin + step : begin + step - a.most;
        } else {
            step = row >= begin ? row - begin : row - begin + a.most;
        }
        a.y[(line * a.most + row) * a.inner + column] =
            step < a.steps ? a.update[(line * a.steps + step) * a.inner + column]
                           : a.past[(line * a.most + row) * a.inner + column];
    }
}

// ---- LinearAttention --------------------------------------------------------------------------

enum {
    COLUMNS = 32,                          // of v, in a block
    SLICES = 8,                            // of a column of the state
    OWN = (WIDTH + SLICES - 1) / SLICES,  // rows of a thread
};

struct linear_arguments {
    const T *q;
    const T *k;
    const T *v;
    const S *past;   // may be NULL
    const T *decay;  // may be NULL
    const T *beta;   // may be NULL
    T *y;
    S *present;  // may be NULL
    i64 rows, heads, kv_heads, v_width, decay_width;
    i64 has_betas;  // one for each head
    double scale;
};

// Over the slices of each column.
__device__ __forceinline__ float column_sum(float x, float (&parts)[SLICES][COLUMNS]) {
    const int column = threadIdx.x % COLUMNS;
    __syncthreads();
    parts[threadIdx.x / COLUMNS][column] = x;
    __syncthreads();
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < SLICES; i++) {
        sum += parts[i][column];
    }
    return sum;
}

// Columns of a state do not know each other: a block has 32 of one head's and walks over all rows. The
// grid is (columns / 32, heads of k and v, batch).
extern "C" __global__ void __launch_bounds__(256) linear_attention(const linear_arguments a) {
    take_turn();
    __shared__ float parts[SLICES][COLUMNS];
    const int slice = threadIdx.x / COLUMNS;
    const i64 column = (i64)blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    const i64 head = blockIdx.y, batch = blockIdx.z, group = a.heads / a.kv_heads;
    const bool is_there = column < a.v_width;
    const i64 at_state = (batch * a.kv_heads + head) * WIDTH * a.v_width + column;
    float state[OWN];
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int row = i * SLICES + slice;
        state[i] = a.past != 0 && is_there && row < WIDTH
                       ? convert<float>(a.past[at_state + row * a.v_width])
                       : 0.0f;
    }
    for (i64 line = batch * a.rows; line < (batch + 1) * a.rows; line++) {
        const i64 at = line * a.kv_heads + head;
        const T *k = a.k + at * WIDTH;
        float known = 0.0f;
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int row = i * SLICES + slice;
            if (row < WIDTH) {
                if (a.decay != 0) {
                    const i64 of = at * a.decay_width + (a.decay_width > 1 ? row : 0);
                    state[i] *= expf(convert<float>(a.decay[of]));
                }
                known += state[i] * convert<float>(k[row]);
            }
        }
        float change = is_there ? convert<float>(a.v[at * a.v_width + column]) : 0.0f;
        if (a.beta != 0) {
            const float beta = convert<float>(a.beta[a.has_betas ? at : line]);
            change = beta * (change - column_sum(known, parts));
        }
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            const int row = i * SLICES + slice;
            state[i] += row < WIDTH ? convert<float>(k[row]) * change : 0.0f;
        }
        for (i64 h = head * group; h < (head + 1) * group; h++) {
            const T *q = a.q + (line * a.heads + h) * WIDTH;
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < OWN; i++) {
                const int row = i * SLICES + slice;
                sum += row < WIDTH ? convert<float>(q[row]) * state[i] : 0.0f;
            }
            sum = column_sum(sum, parts);
            if (slice == 0 && is_there) {
                a.y[(line * a.heads + h) * a.v_width + column] = convert<T>((float)a.scale * sum);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < OWN; i++) {
        const int row = i * SLICES + slice;
        if (a.present != 0 && is_there && row < WIDTH) {
            a.present[at_state + row * a.v_width] = convert<S>(state[i]);
        }
    }
}

// ---- CausalConvWithState ----------------------------------------------------------------------

struct causal_arguments {
    const T *x;        // [lines, length]
    const T *weights;  // [channels, taps]
    const T *bias;     // may be NULL
    const T *past;     // [lines, taps - 1], may be NULL
    T *y;
    T *present;  // may be NULL
    i64 lines, channels, length, taps, has_silu;
};

// Element `at` of a line that begins with what is remembered.
__device__ __forceinline__ T read_line(const causal_arguments &a, i64 line, i64 at) {
    const i64 kept = a.taps - 1;
    return at >= kept    ? a.x[line * a.length + at - kept]
           : a.past != 0 ? a.past[line * kept + at]
                         : convert<T>(0.0f);
}

extern "C" __global__ void __launch_bounds__(256) causal_conv(const causal_arguments a) {
    take_turn();
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.lines * a.length;
         n += (i64)gridDim.x * 256) {
        const i64 line = n / a.length, at = n % a.length, channel = line % a.channels;
        float sum = a.bias != 0 ? convert<float>(a.bias[channel]) : 0.0f;
        for (i64 t = 0; t < a.taps; t++) {
            sum += convert<float>(read_line(a, line, at + t)) *
                   convert<float>(a.weights[channel * a.taps + t]);
        }
        a.y[n] = convert<T>(a.has_silu ? sum / (1.0f + expf(-sum)) : sum);
    }
}

extern "C" __global__ void __launch_bounds__(256) causal_state(const causal_arguments a) {
    take_turn();
    const i64 kept = a.taps - 1;
    for (i64 n = (i64)blockIdx.x * 256 + threadIdx.x; n < a.lines * kept;
         n += (i64)gridDim.x * 256) {
        a.present[n] = read_line(a, n / kept, a.length + n % kept);
    }
}
