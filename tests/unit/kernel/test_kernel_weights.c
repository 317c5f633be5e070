// Forms of constants as they arrive on a device: of every size around those at which they take
// another way, on the fake driver and on the host, with one thread and with several.
// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "base/crew.h"
#include "base/thread_count.h"
#include "kernel/turn.h"
#include "kernel/weights/weight_store.h"
#include "rondo/rondo.h"
#include "support/expect_ok.h"
#include "support/fake/fake_cuda.h"
#include "support/test.h"

enum { KIB = 1 << 10, MIB = 1 << 20, GUARD = 64, MARK = 0xa5, BYTES_MAX = 12 * MIB };

// ---- forms ------------------------------------------------------------------------------------

static uint8_t expected_byte(size_t at) {
    return (uint8_t)(at * 7 + at / 251 + at / 65537);
}

// All of them: a sanitizer looks at a copy as a whole, and at a loop byte by byte.
static uint8_t g_expected[BYTES_MAX];

static void make_expected(void) {
    for (size_t at = 0; at < BYTES_MAX; ++at) {
        g_expected[at] = expected_byte(at);
    }
}

// Rows that say which they are, whatever range is asked for.
static void fill_rows(const rondo__weight_want *want, size_t first, size_t last, void *rows) {
    const size_t row_bytes = want->bytes / want->row_count;
    memcpy(rows, g_expected + first * row_bytes, (last - first) * row_bytes);
}

static rondo_status fill_whole(const rondo__weight_want *want, void *bytes) {
    memcpy(bytes, g_expected, want->bytes);
    return RONDO_STATUS_OK;
}

typedef struct world {
    rondo_device *device;
    rondo__weight_account account;
    rondo__weight_list list;
} world;

static void open_world(const char *device, world *w) {
    *w = (world){0};
    OK(rondo_device_open(device, &w->device));
    OK(rondo_stream_create(w->device, NULL, &w->account.stream));
    OK(rondo__weight_store_create(w->device, RONDO_MEMORY_DEVICE, &w->account.store));
    rondo__weight_list_init(&w->account, &w->list);
}

static void close_world(world *w) {
    rondo__weight_list_cut(&w->list, 0);
    rondo__weight_store_destroy(w->account.store);
    rondo_stream_destroy(w->account.stream);
    rondo_device_release(w->device);
}

static void expect_form(world *w, const rondo__weight_want *want, const char *what) {
    void *address = NULL;
    uint8_t *bytes = malloc(want->bytes);
    assert_non_null(bytes);
    OK(rondo__weight_list_add(&w->list, want, &address));
    OK(rondo_stream_copy(w->account.stream, bytes, address, want->bytes,
                         RONDO_COPY_DEVICE_TO_HOST));
    OK(rondo_stream_synchronize(w->account.stream));
    const bool is_equal = memcmp(bytes, g_expected, want->bytes) == 0;
    for (size_t at = 0; !is_equal && at < want->bytes; ++at) {
        if (bytes[at] != expected_byte(at)) {
            fail_msg("%s of %zu bytes in %zu rows: byte %zu is %u, not %u", what, want->bytes,
                     want->row_count, at, bytes[at], expected_byte(at));
        }
    }
    free(bytes);
}

static void check_forms(const char *device, int32_t threads) {
    static const struct {
        size_t row_count, row_bytes;
    } rows[] = {{1, 1},        {3, 5},           {64, 1023},   {64, KIB},   {65537, 1},
                {1, 64 * KIB}, {1000, 998},      {4096, KIB},  {4097, KIB}, {8193, KIB},
                {3, 4 * MIB},  {2, 4 * MIB + 2}, {300, 40000}, {7, 1000000}};
    world w;
    const int32_t former = rondo__host_choose_thread_count(threads);
    open_world(device, &w);
    rondo__crew_enter();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
        rondo_tensor constant;
        const size_t bytes = rows[i].row_count * rows[i].row_bytes;
        const rondo_shape shape = {.rank = 1, .extent = {(int64_t)bytes}};
        OK(rondo_tensor_init(RONDO_DTYPE_U8, &shape, &constant));
        rondo__weight_want want = {.constant = &constant,
                                   .bytes = bytes,
                                   .form = "row",
                                   .form_bytes = 3,
                                   .fill_rows = fill_rows,
                                   .row_count = rows[i].row_count};
        (void)fill_whole(&want, constant.data);
        expect_form(&w, &want, "a form of rows");
        want = (rondo__weight_want){.constant = &constant, .bytes = bytes};
        expect_form(&w, &want, "a constant");
        want.form = "all";
        want.form_bytes = 3;
        want.fill = fill_whole;
        expect_form(&w, &want, "a form as a whole");
        rondo_tensor_deinit(&constant);
    }
    rondo__crew_leave();
    close_world(&w);
    (void)rondo__host_choose_thread_count(former);
}

TEST(test_kernel_weights__arrive) {
    static const char *const devices[] = {"cuda:0", "host"};
    make_expected();
    fake_cuda_reset(NULL);
    fake_cuda_install();
    for (size_t i = 0; i < 2; ++i) {
        check_forms(devices[i], 1);
        check_forms(devices[i], 5);
    }
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

// What copies go through is given back, the forms stay; it is there again for the next one.
TEST(test_kernel_weights__settled) {
    world w;
    make_expected();
    fake_cuda_reset(NULL);
    fake_cuda_install();
    open_world("cuda:0", &w);
    for (int turn = 0; turn < 2; ++turn) {
        rondo_tensor constant;
        const rondo_shape shape = {.rank = 1, .extent = {MIB}};
        OK(rondo_tensor_init(RONDO_DTYPE_U8, &shape, &constant));
        const rondo__weight_want want = {.constant = &constant, .bytes = MIB};
        (void)fill_whole(&want, constant.data);
        const size_t before = fake_cuda_count_objects();
        expect_form(&w, &want, "a constant");
        assert_int_equal(fake_cuda_count_objects(), before + 2);
        OK(rondo__weight_list_settle(&w.list));
        assert_int_equal(fake_cuda_count_objects(), before + 1);
        rondo_tensor_deinit(&constant);
    }
    close_world(&w);
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

// Small constants of a list are under way together, without pinned memory, and are waited for once:
// by the list, or by another account that comes first.
TEST(test_kernel_weights__one_wait) {
    static const size_t bytes[] = {KIB, 64 * KIB, 300 * KIB};
    enum { COUNT = sizeof bytes / sizeof bytes[0] };
    fake_cuda_reset(NULL);
    fake_cuda_install();
    for (int has_other = 0; has_other < 2; ++has_other) {
        world w;
        rondo_tensor constants[COUNT];
        open_world("cuda:0", &w);
        rondo__weight_account other = {.store = w.account.store};
        rondo__weight_list others;
        OK(rondo_stream_create(w.device, NULL, &other.stream));
        rondo__weight_list_init(&other, &others);
        const size_t waits = fake_cuda_count_calls("cuStreamSynchronize");
        void *address = NULL;
        for (size_t i = 0; i < COUNT; ++i) {
            const rondo_shape shape = {.rank = 1, .extent = {(int64_t)bytes[i]}};
            OK(rondo_tensor_init(RONDO_DTYPE_U8, &shape, &constants[i]));
            const rondo__weight_want want = {.constant = &constants[i], .bytes = bytes[i]};
            (void)fill_whole(&want, constants[i].data);
            OK(rondo__weight_list_add(&w.list, &want, &address));
        }
        assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize"), waits);
        assert_int_equal(fake_cuda_count_bytes(true), 0);
        if (has_other) {
            const rondo__weight_want want = {.constant = &constants[0], .bytes = bytes[0]};
            OK(rondo__weight_list_add(&others, &want, &address));
            assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize"), waits + 1);
        }
        OK(rondo__weight_list_settle(&w.list));
        assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize"), waits + 1);
        for (size_t i = 0; i < COUNT; ++i) {
            const rondo__weight_want want = {.constant = &constants[i], .bytes = bytes[i]};
            expect_form(&w, &want, "a small constant");
            rondo_tensor_deinit(&constants[i]);
        }
        rondo__weight_list_cut(&others, 0);
        rondo_stream_destroy(other.stream);
        close_world(&w);
    }
    assert_string_equal(fake_cuda_get_violations(), "");
    assert_int_equal(fake_cuda_count_objects(), 0);
    fake_cuda_uninstall();
}

// ---- in time ----------------------------------------------------------------------------------

typedef struct pace {
    void *latest;  // memory of the part before
    size_t part_count, wait_count;
} pace;

// A part must not go where the one before it is copied from, and the copies before that one must
// have been waited for.
static void fill_in_time(const rondo__weight_want *want, size_t first, size_t last, void *rows) {
    pace *p = (pace *)(uintptr_t)want->data;
    (void)first;
    (void)last;
    assert_ptr_not_equal(rows, p->latest);
    assert_int_equal(fake_cuda_count_calls("cuStreamSynchronize"), p->wait_count + p->part_count);
    p->latest = rows;
    p->part_count += 1;
}

TEST(test_kernel_weights__in_time) {
    world w;
    pace p = {0};
    rondo_tensor constant;
    const rondo_shape shape = {.rank = 1, .extent = {1}};
    void *address = NULL;
    fake_cuda_reset(NULL);
    fake_cuda_install();
    open_world("cuda:0", &w);
    OK(rondo_tensor_init(RONDO_DTYPE_U8, &shape, &constant));
    const rondo__weight_want want = {.constant = &constant,
                                     .bytes = (size_t)20 * MIB,
                                     .fill_rows = fill_in_time,
                                     .row_count = 20,
                                     .data = &p};
    p.wait_count = fake_cuda_count_calls("cuStreamSynchronize");
    OK(rondo__weight_list_add(&w.list, &want, &address));
    assert_int_equal(p.part_count, 5);
    rondo_tensor_deinit(&constant);
    close_world(&w);
    assert_string_equal(fake_cuda_get_violations(), "");
    fake_cuda_uninstall();
}

// ---- turning ----------------------------------------------------------------------------------

static void check_turn(size_t rows, size_t columns, size_t element_bytes) {
    const size_t from_pitch = columns + rows % 3, to_pitch = rows + columns % 3;
    const size_t from_bytes = rows * from_pitch * element_bytes;
    const size_t to_bytes = columns * to_pitch * element_bytes;
    uint8_t *from = malloc(from_bytes), *to = malloc(to_bytes + GUARD);
    assert_true(from != NULL && to != NULL);
    for (size_t i = 0; i < from_bytes; ++i) {
        from[i] = expected_byte(i);
    }
    memset(to, MARK, to_bytes + GUARD);
    rondo__turn(from, from_pitch, to, to_pitch, rows, columns, element_bytes);
    for (size_t column = 0; column < columns; ++column) {
        for (size_t row = 0; row < to_pitch; ++row) {
            const uint8_t *found = to + (column * to_pitch + row) * element_bytes;
            const uint8_t *wanted = from + (row * from_pitch + column) * element_bytes;
            for (size_t b = 0; b < element_bytes; ++b) {
                const uint8_t value = row < rows ? wanted[b] : MARK;
                if (found[b] != value) {
                    fail_msg("%zu x %zu of %zu bytes: row %zu, column %zu is wrong", rows, columns,
                             element_bytes, row, column);
                }
            }
        }
    }
    for (size_t i = 0; i < GUARD; ++i) {
        assert_int_equal(to[to_bytes + i], MARK);
    }
    free(from);
    free(to);
}

TEST(test_kernel_weights__turned) {
    static const size_t extents[] = {1, 2, 7, 8, 9, 16, 63, 64, 65, 130};
    static const size_t sizes[] = {1, 2, 3, 4, 8, 16};
    for (size_t i = 0; i < sizeof extents / sizeof extents[0]; ++i) {
        for (size_t j = 0; j < sizeof extents / sizeof extents[0]; ++j) {
            for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; ++k) {
                check_turn(extents[i], extents[j], sizes[k]);
            }
        }
    }
}

TEST_MAIN()
