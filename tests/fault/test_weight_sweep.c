// Fail the nth for forms of constants: every driver call (on the fake driver) and every allocation
// (there and on the host) fails once, in turn, while two accounts take the same forms and others.
// Whatever fails: the failing call wrote a fresh record, nothing stays behind, and each account's
// budget counts what it holds, each form once.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "kernel/weights/weight_store.h"
#include "rondo/rondo.h"
#include "support/sweep.h"

enum { ACCOUNTS = 2, LISTS = 2, FORMS = 4, FLOATS = 200, ROWS = 100, LIMIT = 1 << 20 };

// The last is large enough to go through pinned memory, row by row.
static const size_t form_bytes[FORMS] = {FLOATS * sizeof(float), FLOATS * sizeof(float),
                                         FLOATS * sizeof(float), ROWS *FLOATS * sizeof(float)};

typedef struct world {
    const char *device_name;
    rondo_device *device;
    rondo_stream *stream;
    rondo_tensor constant;
    rondo__weight_account accounts[ACCOUNTS];
    rondo__weight_list lists[ACCOUNTS][LISTS];
    void *addresses[FORMS];
} world;

static rondo_status fill_twice(const rondo__weight_want *want, void *bytes) {
    const float *from = want->constant->data;
    for (int i = 0; i < FLOATS; ++i) {
        ((float *)bytes)[i] = 2.0f * from[i];
    }
    return RONDO_STATUS_OK;
}

static void fill_rows(const rondo__weight_want *want, size_t first, size_t last, void *rows) {
    for (size_t row = first; row < last; ++row) {
        memcpy((float *)rows + (row - first) * FLOATS, want->constant->data, form_bytes[0]);
    }
}

static void open_world(world *w) {
    const rondo_shape shape = {.rank = 1, .extent = {FLOATS}};
    STEP(rondo_device_open(w->device_name, &w->device));
    STEP(rondo_stream_create(w->device, NULL, &w->stream));
    STEP(rondo_tensor_init(RONDO_DTYPE_F32, &shape, &w->constant));
    rondo__weight_store *store = NULL;
    STEP(rondo__weight_store_create(w->device, RONDO_MEMORY_DEVICE, &store));
    for (int a = 0; a < ACCOUNTS; ++a) {
        w->accounts[a] = (rondo__weight_account){.store = store, .stream = w->stream};
    }
    for (int a = 0; a < ACCOUNTS; ++a) {
        STEP(rondo__budget_create(LIMIT, "the limit", &w->accounts[a].budget));
        for (int l = 0; l < LISTS; ++l) {
            rondo__weight_list_init(&w->accounts[a], &w->lists[a][l]);
        }
    }
}

// Of a list that is there: its own bytes, a form of them, and another.
static void fill_list(world *w, rondo__weight_list *list) {
    for (int form = 0; list->account != NULL && form < FORMS; ++form) {
        const rondo__weight_want want = {.constant = &w->constant,
                                         .form = &form,
                                         .form_bytes = sizeof form,
                                         .bytes = form_bytes[form],
                                         .fill = form == 1 || form == 2 ? fill_twice : NULL,
                                         .fill_rows = form == 3 ? fill_rows : NULL,
                                         .row_count = ROWS};
        void *address = NULL;
        STEP(rondo__weight_list_add(list, &want, &address));
        assert_true(w->addresses[form] == NULL || w->addresses[form] == address);
        w->addresses[form] = address;
        STEP(rondo__weight_list_add(list, &want, &address));  // the same node again
        assert_true(w->addresses[form] == address);
    }
    if (list->account != NULL) {
        STEP(rondo__weight_list_settle(list));
    }
}

static void check_world(const world *w) {
    for (int a = 0; a < ACCOUNTS; ++a) {
        const rondo__weight_account *account = &w->accounts[a];
        size_t most = 0;
        for (int l = 0; l < LISTS; ++l) {
            most = w->lists[a][l].count > most ? w->lists[a][l].count : most;
        }
        size_t bytes = 0;
        for (size_t form = 0; form < most; ++form) {
            bytes += form_bytes[form];
        }
        assert_int_equal(account->bytes, bytes);
        if (account->budget != NULL) {
            assert_int_equal(rondo__budget_get_used(account->budget), account->bytes);
        }
    }
}

static void close_world(world *w) {
    for (int a = 0; a < ACCOUNTS; ++a) {
        for (int l = 0; l < LISTS; ++l) {
            rondo__weight_list_cut(&w->lists[a][l], 0);
        }
        assert_int_equal(w->accounts[a].bytes, 0);
        rondo__budget_release(w->accounts[a].budget);
    }
    rondo__weight_store_destroy(w->accounts[0].store);
    rondo_tensor_deinit(&w->constant);
    rondo_stream_destroy(w->stream);
    rondo_device_release(w->device);
}

static void run_round(const sweep_point *point) {
    world w = {.device_name = point->device_name};
    open_world(&w);
    for (int a = 0; a < ACCOUNTS; ++a) {
        for (int l = 0; l < LISTS; ++l) {
            fill_list(&w, &w.lists[a][l]);
        }
    }
    (void)sweep_lift();
    check_world(&w);
    // Half of a list goes, as after a kernel that could not be made; all of it can be had again.
    rondo__weight_list *list = &w.lists[1][1];
    if (list->account != NULL) {
        rondo__weight_list_cut(list, list->count / 2);
        check_world(&w);
        fill_list(&w, list);
        const bool is_lost = rondo_stream_synchronize(w.stream) != RONDO_STATUS_OK;
        assert_true(is_lost || list->count == FORMS);
        check_world(&w);
    }
    close_world(&w);
}

TEST(test_weight_sweep__fake_driver) {
    const sweep_subject subject = {.run = run_round};
    const sweep_count count = sweep_on_fake("weights", &subject);
    assert_true(count.driver_calls > 10 && count.allocations > 10);
}

TEST(test_weight_sweep__host) {
    const sweep_subject subject = {.run = run_round};
    assert_true(sweep_allocations(&subject, "host") > 10);
}

// A constant that does not own its bytes is served, and shared with nobody; what a budget refuses
// is not made; a fill that fails leaves nothing.
static rondo_status refuse(const rondo__weight_want *want, void *bytes) {
    (void)want;
    (void)bytes;
    return RONDO_STATUS_UNSUPPORTED;
}

TEST(test_weight_sweep__what_is_not_shared) {
    world w = {.device_name = "host"};
    open_world(&w);
    rondo_tensor borrowed = w.constant;
    borrowed.storage = NULL;
    void *first = NULL;
    void *second = NULL;
    rondo__weight_want want = {.constant = &borrowed, .bytes = FLOATS * sizeof(float)};
    OK(rondo__weight_list_add(&w.lists[0][0], &want, &first));
    OK(rondo__weight_list_add(&w.lists[1][0], &want, &second));
    assert_true(first != second && memcmp(first, second, want.bytes) == 0);
    assert_int_equal(rondo__weight_list_get_shared_bytes(&w.lists[0][0]), 0);
    want.constant = &w.constant;
    want.fill = refuse;
    assert_int_equal(rondo__weight_list_add(&w.lists[0][0], &want, &first),
                     RONDO_STATUS_UNSUPPORTED);
    assert_null(first);
    want.fill = NULL;
    rondo__budget_set_limit(w.accounts[0].budget, 3 * want.bytes / 2);
    assert_int_equal(rondo__weight_list_add(&w.lists[0][0], &want, &first), RONDO_STATUS_NO_MEMORY);
    assert_non_null(strstr(rondo_error_get_last()->message, "raise the limit"));
    assert_int_equal(w.accounts[0].bytes, want.bytes);
    close_world(&w);
}

TEST_MAIN()
