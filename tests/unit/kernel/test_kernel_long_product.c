// Products whose k is cut into parts have the bits of those whose k is not; and tiles of all widths
// write what they are asked to, no more.
// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "kernel/host/product/packed_matrix.h"
#include "support/test.h"

typedef struct long_product {
    int64_t m, k, n;
    float *a, *b, *panels, *z, *y[2];
    int32_t *offsets;  // NULL: rows of a lie together; not NULL: its columns do
} long_product;

enum { PAST = 8, MARK = 77 };  // floats behind each row of y

static float draw(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return (float)(int32_t)(*state >> 8) / (float)(1 << 23) - 1.0f;
}

static float *make(int64_t count, uint32_t *state) {
    float *values = rondo__calloc((size_t)count, sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; ++i) {
        values[i] = draw(state);
    }
    return values;
}

static void multiply(const long_product *p, const rondo__simd *simd, bool streams, bool has_z,
                     float *y) {
    const int64_t row = p->n + PAST;
    for (int64_t i = 0; i < p->m * row; ++i) {
        y[i] = i % row < p->n && has_z ? p->z[i / row * p->n + i % row] : (float)MARK;
    }
    const rondo__row_product product = {
        .simd = simd,
        .m = p->m,
        .k = p->k,
        .n = p->n,
        .a = p->a,
        .a_row = p->offsets != NULL ? 1 : p->k,
        .a_offsets = p->offsets,
        .panels = p->panels,
        .panel_step = p->k * simd->panel_columns,
        .b_row = simd->panel_columns,
        .streams = streams,
        .scale = 0.5f,
        .low = -2.0f,
        .high = INFINITY,
        .bias = has_z ? p->z : NULL,
        .z = has_z ? y : NULL,  // in place
        .z_row = row,
        .y = y,
        .y_row = row,
    };
    rondo__multiply_rows(&product);
}

static void check(int64_t m, int64_t k, int64_t n, bool is_turned) {
    const rondo__simd *simd = rondo__simd_get();
    const int64_t width = simd->panel_columns, panels = (n + width - 1) / width;
    uint32_t state = 7;
    long_product p = {.m = m, .k = k, .n = n};
    p.a = make(m * k, &state);
    int32_t *offsets = rondo__calloc((size_t)k, sizeof *offsets);
    assert_non_null(offsets);
    for (int64_t j = 0; j < k; ++j) {
        offsets[j] = (int32_t)(j * m);
    }
    p.offsets = is_turned ? offsets : NULL;
    p.b = make(k * n, &state);
    p.z = make(m * n, &state);
    p.panels = make(panels * k * width, &state);
    for (int64_t panel = 0; panel < panels; ++panel) {
        rondo__pack_panel(simd, p.b, n, 1, k, n, panel, p.panels + panel * k * width);
    }
    const int64_t floats = m * (n + PAST), step = k > 100 ? 11 : 1;
    p.y[0] = make(floats, &state);
    p.y[1] = make(floats, &state);
    for (int has_z = 0; has_z < 2; ++has_z) {
        multiply(&p, simd, false, has_z != 0, p.y[0]);
        multiply(&p, simd, true, has_z != 0, p.y[1]);
        assert_memory_equal(p.y[0], p.y[1], (size_t)floats * sizeof(float));
        for (int64_t i = 0; i < floats; i += step) {
            const int64_t r = i / (n + PAST), c = i % (n + PAST);
            double sum = 0.0;
            for (int64_t j = 0; c < n && j < k; ++j) {
                const float a = p.a[is_turned ? j * m + r : r * k + j];
                sum += (double)a * (double)p.b[j * n + c];
            }
            sum *= 0.5;
            if (has_z && c < n) {
                sum += (double)p.z[c] + (double)p.z[r * n + c];
            }
            const double wanted = c >= n ? MARK : sum < -2.0 ? -2.0 : sum;
            assert_true(!!(fabs((double)p.y[0][i] - wanted) <= 1e-6 * (double)(k + 9)));
        }
    }
    float *all[] = {p.a, p.b, p.z, p.panels, p.y[0], p.y[1]};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) {
        rondo__free(all[i]);
    }
    rondo__free(offsets);
}

TEST(test_kernel_long_product__parts_of_k_change_no_bit) {
    static const int64_t sizes[][3] = {
        {13, 2049, 33}, {14, 4100, 50}, {20, 9000, 70},
        {140, 4200, 7}, {30, 70000, 3}, {3, 9000, 40},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
        check(sizes[i][0], sizes[i][1], sizes[i][2], false);
        check(sizes[i][0], sizes[i][1], sizes[i][2], true);
    }
}

TEST(test_kernel_long_product__tiles_of_every_width_stay_inside) {
    for (int64_t n = 1; n <= 40; ++n) {
        check(1, 5, n, false);
        check(13, 8, n, false);
        check(26, 3, n, false);
    }
}

TEST_MAIN()
