// Cast between all types of numbers against exact arithmetic, on each device: all f16 and bf16, and
// of wider types what lies on, and right beside, the places where results change.
//
// Here a number is m * 2^e, and rounding is done on whole numbers.
// SPDX-License-Identifier: Apache-2.0
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/models.h"
#include "support/on_devices.h"
#include "support/short_forms.h"
#include "support/test.h"

enum { VALUES_MAX = 1 << 18 };

// ---- exact numbers ----------------------------------------------------------------------------

typedef struct exact {
    bool is_negative, is_infinite, is_nan;
    uint64_t m;
    int e;
} exact;

// Of a type of floats: bits of exponent and fraction; of a type of whole numbers 0, 0.
typedef struct format {
    rondo_dtype dtype;
    int onnx;  // its number
    int exponent, fraction;
    int whole_bits;
    bool is_signed;
} format;

static const format formats[] = {
    {RONDO_DTYPE_F16, 10, 5, 10, 0, true},  {RONDO_DTYPE_BF16, 16, 8, 7, 0, true},
    {RONDO_DTYPE_F32, 1, 8, 23, 0, true},   {RONDO_DTYPE_F64, 11, 11, 52, 0, true},
    {RONDO_DTYPE_I8, 3, 0, 0, 8, true},     {RONDO_DTYPE_I16, 5, 0, 0, 16, true},
    {RONDO_DTYPE_I32, 6, 0, 0, 32, true},   {RONDO_DTYPE_I64, 7, 0, 0, 64, true},
    {RONDO_DTYPE_U8, 2, 0, 0, 8, false},    {RONDO_DTYPE_U16, 4, 0, 0, 16, false},
    {RONDO_DTYPE_U32, 12, 0, 0, 32, false}, {RONDO_DTYPE_U64, 13, 0, 0, 64, false},
    {RONDO_DTYPE_BOOL, 9, 0, 0, 1, false},
};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static uint64_t get_mask(int bits) {
    return bits >= 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
}

static int get_bits(const format *f) {
    return f->whole_bits > 0 ? f->whole_bits : 1 + f->exponent + f->fraction;
}

static exact decode(const format *f, uint64_t bits) {
    exact x = {0};
    if (f->whole_bits > 0) {
        x.is_negative = f->is_signed && (bits >> (f->whole_bits - 1) & 1) != 0;
        x.m = (x.is_negative ? UINT64_C(0) - bits : bits) & get_mask(f->whole_bits);
        return x;
    }
    const int bias = (1 << (f->exponent - 1)) - 1;
    const int exponent = (int)(bits >> f->fraction & get_mask(f->exponent));
    x.is_negative = (bits >> (f->exponent + f->fraction) & 1) != 0;
    x.m = bits & get_mask(f->fraction);
    x.is_nan = exponent == (int)get_mask(f->exponent) && x.m != 0;
    x.is_infinite = exponent == (int)get_mask(f->exponent) && x.m == 0;
    x.m |= exponent > 0 ? UINT64_C(1) << f->fraction : 0;
    x.e = (exponent > 0 ? exponent : 1) - bias - f->fraction;
    return x;
}

// m * 2^-shift, to the nearest whole number, and to the even one of two.
static uint64_t shift_and_round(uint64_t m, int shift) {
    if (shift <= 0) {
        return m << -shift;
    }
    if (shift > 64) {
        return 0;
    }
    const uint64_t kept = shift == 64 ? 0 : m >> shift, half = UINT64_C(1) << (shift - 1);
    const uint64_t rest = m & get_mask(shift);
    return kept + (rest > half || (rest == half && (kept & 1) != 0));
}

static uint64_t encode_real(const format *f, const exact *x) {
    const int lowest = 2 - (1 << (f->exponent - 1));  // exponent of the least normal number
    const uint64_t infinite = get_mask(f->exponent) << f->fraction;
    const uint64_t sign = (uint64_t)x->is_negative << (f->exponent + f->fraction);
    if (x->is_nan || x->is_infinite || x->m == 0) {
        return sign | (x->is_nan ? infinite | 1 : x->is_infinite ? infinite : 0);
    }
    const int top = 63 - __builtin_clzll(x->m) + x->e;
    const int last = (top > lowest ? top : lowest) - f->fraction;  // exponent of the last place
    const uint64_t places = shift_and_round(x->m, last - x->e);
    // The leading one of `places` counts the exponent up; so does a carry.
    if (last + f->fraction - lowest > (int)get_mask(f->exponent)) {
        return sign | infinite;
    }
    const uint64_t bits = ((uint64_t)(last + f->fraction - lowest) << f->fraction) + places;
    return sign | (bits < infinite ? bits : infinite);
}

// The whole part, cut off at 2^64 - 1.
static uint64_t get_whole(const exact *x) {
    if (x->is_nan || x->m == 0) {
        return 0;
    }
    if (x->is_infinite || 63 - __builtin_clzll(x->m) + x->e > 63) {
        return UINT64_MAX;
    }
    return x->e >= 0 ? x->m << x->e : x->e > -64 ? x->m >> -x->e : 0;
}

// As docs and references say: cut to 64 bits at their limits, then wrapped.
static uint64_t encode_whole(const format *f, bool is_from_real, const exact *x) {
    uint64_t whole = get_whole(x);
    const uint64_t limit = (uint64_t)INT64_MAX + x->is_negative;
    const bool has_sign_bit = f->dtype == RONDO_DTYPE_U64 && !x->is_negative;
    if (is_from_real && !has_sign_bit && whole > limit) {
        whole = limit;
    }
    return (x->is_negative ? UINT64_C(0) - whole : whole) & get_mask(f->whole_bits);
}

static uint64_t convert(const format *from, const format *to, uint64_t bits) {
    const exact x = decode(from, bits);
    if (to->dtype == RONDO_DTYPE_BOOL) {
        return x.m != 0 || x.is_infinite;
    }
    return to->whole_bits > 0 ? encode_whole(to, from->whole_bits == 0, &x) : encode_real(to, &x);
}

// ---- values -----------------------------------------------------------------------------------

typedef struct value_list {
    const format *of;
    uint64_t *bits;
    size_t count;
} value_list;

static void add(value_list *list, uint64_t bits) {
    if (list->count < VALUES_MAX) {
        list->bits[list->count++] = bits & get_mask(get_bits(list->of));
    }
}

// A number that this type holds as `bits`, its neighbours, and all of them with the other sign.
static void add_around(value_list *list, uint64_t bits) {
    const format *f = list->of;
    const uint64_t sign = f->whole_bits > 0 ? 0 : UINT64_C(1) << (get_bits(f) - 1);
    for (int64_t d = -1; d <= 1; ++d) {
        const uint64_t one = bits + (uint64_t)d;
        add(list, one);
        add(list, f->whole_bits > 0 ? UINT64_C(0) - one : one ^ sign);
    }
}

// Numbers of a narrower type of floats, and what lies halfway between them.
static void add_numbers_of(value_list *list, const format *narrow, uint64_t step) {
    const uint64_t infinite = get_mask(narrow->exponent) << narrow->fraction;
    for (uint64_t bits = 0; bits < infinite; bits += step) {
        exact x = decode(narrow, bits);
        add_around(list, encode_real(list->of, &x));
        x.m = 2 * x.m + 1;
        x.e -= 1;
        add_around(list, encode_real(list->of, &x));
    }
}

// Powers of two, and what lies halfway between two numbers of the types of floats behind them.
static void add_whole_edges(value_list *list) {
    static const int digits[] = {8, 11, 24, 53};
    for (int power = 0; power < list->of->whole_bits; ++power) {
        const uint64_t two = UINT64_C(1) << power;
        add_around(list, two);
        for (size_t d = 0; d < sizeof digits / sizeof digits[0]; ++d) {
            for (uint64_t odd = 1; power >= digits[d] && odd < 8; odd += 2) {
                const uint64_t half = UINT64_C(1) << (power - digits[d]);
                add_around(list, two + odd * half);
                add_around(list, 2 * two - odd * half);
            }
        }
    }
}

static void make_values(value_list *list) {
    const format *f = list->of;
    uint64_t random = 1;
    list->count = 0;
    for (uint64_t bits = 0; get_bits(f) <= 16 && bits <= get_mask(get_bits(f)); ++bits) {
        add(list, bits);
    }
    if (get_bits(f) <= 16) {
        return;
    }
    for (int i = 0; i < 20000; ++i) {
        random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        add(list, (random ^ random >> 29) >> (i % 2 != 0 && f->whole_bits > 0 ? i % 64 : 0));
    }
    if (f->whole_bits > 0) {
        add_whole_edges(list);
        return;
    }
    const uint64_t infinite = get_mask(f->exponent) << f->fraction;
    add_around(list, infinite);
    add_around(list, infinite | infinite >> 1);
    add_around(list, 0);
    for (int i = 0; i < 2; ++i) {
        add_numbers_of(list, &formats[i], 7);
    }
    if (f->dtype == RONDO_DTYPE_F64) {
        add_numbers_of(list, &formats[2], UINT64_C(999983));
    }
    for (int power = 0; power <= 64; ++power) {
        const exact x = {.m = 1, .e = power};
        add_around(list, encode_real(f, &x));
        const exact half = {.m = 3, .e = power - 1};
        add_around(list, encode_real(f, &half));
    }
}

// ---- running ----------------------------------------------------------------------------------

static rondo_device *device;
static rondo_stream *stream;

static uint64_t fetch(const void *data, size_t bytes, size_t index) {
    uint64_t value = 0;
    memcpy(&value, (const char *)data + index * bytes, bytes);
    return value;
}

static bool is_nan(const format *f, uint64_t bits) {
    return f->whole_bits == 0 && decode(f, bits).is_nan;
}

static void run_cast(const rondo_tensor *x, const format *to, void *results) {
    const rondo_attribute attribute = ATTRIBUTE_INT("to", to->onnx);
    const rondo_op_options options = {
        .struct_size = sizeof options, .attributes = &attribute, .attribute_count = 1};
    const rondo_tensor info = {.dtype = x->dtype, .shape = x->shape};
    rondo_tensor y;
    rondo_op *op;
    OK(rondo_op_prepare(device, "Cast", &options, &info, 1, 1, &op));
    OK(rondo_tensor_init_device(device, to->dtype, &x->shape, &y));
    OK(rondo_op_put(op, stream, x, 1, &y, 1));
    OK(rondo_stream_copy(stream, results, y.data, rondo_tensor_get_bytes(&y),
                         RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(stream));
    rondo_op_destroy(op);
    rondo_tensor_deinit(&y);
}

static void check_pair(const value_list *list, const rondo_tensor *x, const format *to,
                       void *results) {
    const size_t bytes = rondo_dtype_get_bytes(to->dtype);
    size_t wrong = 0;
    run_cast(x, to, results);
    for (size_t i = 0; i < list->count; ++i) {
        const uint64_t wanted = convert(list->of, to, list->bits[i]);
        const uint64_t got = fetch(results, bytes, i);
        if (got != wanted && !(is_nan(to, got) && is_nan(to, wanted)) && wrong++ < 3) {
            print_error("%s, %s to %s: %#llx becomes %#llx, not %#llx\n", on_devices_get_name(),
                        rondo_dtype_get_name(list->of->dtype), rondo_dtype_get_name(to->dtype),
                        (unsigned long long)list->bits[i], (unsigned long long)got,
                        (unsigned long long)wanted);
        }
    }
    assert_int_equal(wrong, 0);
}

TEST(test_kernel_cast__rounds_once_between_all_types) {
    value_list list = {.bits = malloc(VALUES_MAX * sizeof(uint64_t))};
    void *data = malloc(VALUES_MAX * sizeof(uint64_t)), *results = malloc(VALUES_MAX * 8);
    assert_true(list.bits != NULL && data != NULL && results != NULL);
    OK(rondo_device_open(on_devices_get_name(), &device));
    OK(rondo_stream_create(device, NULL, &stream));
    for (size_t from = 0; from < FORMAT_COUNT; ++from) {
        list.of = &formats[from];
        make_values(&list);
        assert_true(list.count > 0 && list.count < VALUES_MAX);
        const rondo_shape shape = {1, {(int64_t)list.count}};
        const size_t bytes = rondo_dtype_get_bytes(list.of->dtype);
        rondo_tensor x;
        OK(rondo_tensor_init_device(device, list.of->dtype, &shape, &x));
        for (size_t i = 0; i < list.count; ++i) {
            memcpy((char *)data + i * bytes, &list.bits[i], bytes);  // little endian
        }
        OK(rondo_stream_copy(stream, x.data, data, list.count * bytes, RONDO_COPY_HOST_TO_DEVICE));
        for (size_t to = 0; to < FORMAT_COUNT; ++to) {
            check_pair(&list, &x, &formats[to], results);
        }
        rondo_tensor_deinit(&x);
    }
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    free(list.bits);
    free(data);
    free(results);
}

int main(void) {
    return ON_DEVICES();
}
