#include "random_tensor.h"

#include <stddef.h>
#include <string.h>

#include "tensor_text.h"

// SplitMix64: good enough for test data, and the same everywhere.
// Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
static uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static void store_random(rondo_dtype dtype, void *data, size_t index, uint64_t bits) {
    const float real = (float)(bits >> 40) * (1.0f / 8388608.0f) - 1.0f;  // 24 bits: [-1, 1)
    uint32_t real_bits;
    memcpy(&real_bits, &real, sizeof real_bits);
    switch (dtype) {
        case RONDO_DTYPE_F32:
            ((float *)data)[index] = real;
            break;
        case RONDO_DTYPE_F64:
            ((double *)data)[index] = (double)real;
            break;
        case RONDO_DTYPE_F16:
            ((uint16_t *)data)[index] = rondo_half_from_float(real);
            break;
        case RONDO_DTYPE_BF16:
            ((uint16_t *)data)[index] = (uint16_t)(real_bits >> 16);
            break;
        default: {
            const size_t width = rondo_dtype_get_bytes(dtype);
            const uint64_t bit = bits >> 63;
            memcpy((char *)data + index * width, &bit, width);
            break;
        }
    }
}

void cli_random_fill(rondo_tensor *tensor, uint64_t seed) {
    uint64_t state = seed;
    const int64_t count = cli_is_number(tensor->dtype) ? rondo_shape_get_count(&tensor->shape) : 0;
    for (int64_t i = 0; i < count; i++) {
        store_random(tensor->dtype, tensor->data, (size_t)i, next_random(&state));
    }
}
