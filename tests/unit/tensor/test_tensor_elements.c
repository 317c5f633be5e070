// Tensors of strings, sequences and optionals: who owns what, copies, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "base/memory.h"
#include "rondo/dlpack.h"
#include "support/expect_ok.h"
#include "support/test.h"
#include "tensor/elements.h"

static const rondo_shape pair = {.rank = 1, .extent = {2}};

static const rondo_string *get_strings(const rondo_tensor *tensor) {
    return tensor->data;
}

TEST(test_tensor_elements__strings_are_copied) {
    char text[] = "good";
    const rondo_string words[] = {{text, 4}, {"a\0b", 3}};
    rondo_tensor tensor;
    rondo_tensor second;
    OK(rondo_tensor_init_strings(&pair, words, &tensor));
    memset(text, 'x', sizeof text);
    assert_int_equal(tensor.dtype, RONDO_DTYPE_STRING);
    assert_int_equal(rondo_tensor_get_bytes(&tensor), 2 * sizeof(rondo_string));
    assert_int_equal(rondo__tensor_measure(&tensor), 2 * sizeof(rondo_string) + 7);
    assert_string_equal(get_strings(&tensor)[0].data, "good");  // a zero stands behind it
    assert_int_equal(get_strings(&tensor)[1].size, 3);
    assert_memory_equal(get_strings(&tensor)[1].data, "a\0b", 4);
    // Strings live as long as the last tensor that shares them.
    rondo_tensor_share(&tensor, &second);
    rondo_tensor_deinit(&tensor);
    assert_string_equal(get_strings(&second)[0].data, "good");
    rondo_tensor_deinit(&second);
    OK(rondo_tensor_init(RONDO_DTYPE_STRING, &pair, &tensor));
    assert_int_equal(get_strings(&tensor)[1].size, 0);
    rondo_tensor_deinit(&tensor);
    OK(rondo_tensor_init_strings(&(rondo_shape){.rank = 1}, NULL, &tensor));
    assert_int_equal(rondo_tensor_get_bytes(&tensor), 0);
    rondo_tensor_deinit(&tensor);
}

TEST(test_tensor_elements__strings_may_be_borrowed) {
    rondo_string words[] = {{"one", 3}, {NULL, 0}};
    const rondo_tensor borrowed = {.dtype = RONDO_DTYPE_STRING, .shape = pair, .data = words};
    rondo_tensor kept;
    rondo_tensor copy;
    OK(rondo__tensor_keep(&borrowed, &kept));
    words[0] = (rondo_string){"other", 5};
    assert_string_equal(get_strings(&kept)[0].data, "one");
    assert_string_equal(get_strings(&kept)[1].data, "");
    // What owns its bytes is shared when kept, and not when copied.
    OK(rondo__tensor_copy(&kept, &copy));
    assert_ptr_not_equal(copy.data, kept.data);
    rondo_tensor_deinit(&copy);
    OK(rondo__tensor_keep(&kept, &copy));
    assert_ptr_equal(copy.data, kept.data);
    rondo_tensor_deinit(&copy);
    rondo_tensor_deinit(&kept);
}

TEST(test_tensor_elements__sequences_share_their_items) {
    rondo_tensor items[2];
    rondo_tensor sequence;
    rondo_tensor optional;
    rondo_tensor copy;
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &pair, &items[0]));
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &(rondo_shape){0}, &items[1]));
    ((float *)items[0].data)[1] = 2.5f;
    OK(rondo_tensor_init_sequence(items, 2, &sequence));
    assert_ptr_equal(rondo_tensor_get_item(&sequence, 0)->data, items[0].data);
    rondo_tensor_deinit(&items[0]);
    rondo_tensor_deinit(&items[1]);
    OK(rondo_tensor_init_optional(&sequence, &optional));
    rondo_tensor_deinit(&sequence);
    OK(rondo__tensor_copy(&optional, &copy));
    const rondo_tensor *held = rondo_tensor_get_item(&optional, 0);
    const rondo_tensor *copied = rondo_tensor_get_item(&copy, 0);
    assert_int_equal(held->dtype, RONDO_DTYPE_SEQUENCE);
    assert_int_equal(held->shape.extent[0], 2);
    assert_ptr_not_equal(rondo_tensor_get_item(copied, 0)->data,
                         rondo_tensor_get_item(held, 0)->data);
    rondo_tensor_deinit(&optional);
    assert_true(((const float *)rondo_tensor_get_item(copied, 0)->data)[1] == 2.5f);
    assert_null(rondo_tensor_get_item(copied, 2));
    assert_null(rondo_tensor_get_item(&copy, 1));
    assert_null(rondo_tensor_get_item(NULL, 0));
    rondo_tensor_deinit(&copy);
    OK(rondo_tensor_init_optional(NULL, &optional));
    assert_null(rondo_tensor_get_item(&optional, 0));
    rondo_tensor_deinit(&optional);
}

static void expect_invalid(rondo_status status, const char *part) {
    assert_int_equal(status, RONDO_STATUS_INVALID);
    if (strstr(rondo_error_get_last()->message, part) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", rondo_error_get_last()->message, part);
    }
}

TEST(test_tensor_elements__nonsense_is_refused) {
    const rondo_string nowhere[] = {{"a", 1}, {NULL, 3}};
    const rondo_shape negative = {.rank = 1, .extent = {-1}};
    rondo_tensor tensor;
    rondo_tensor items[2] = {{0}};
    expect_invalid(rondo_tensor_init_strings(&pair, nowhere, &tensor), "string 1 has 3 bytes");
    expect_invalid(rondo_tensor_init_strings(&pair, NULL, &tensor), "strings is NULL");
    expect_invalid(rondo_tensor_init_strings(NULL, nowhere, &tensor), "needs a shape");
    expect_invalid(rondo_tensor_init_strings(&negative, nowhere, &tensor), "is no shape");
    expect_invalid(rondo_tensor_init(RONDO_DTYPE_SEQUENCE, &pair, &tensor),
                   "rondo_tensor_init_sequence");
    expect_invalid(rondo_tensor_init_sequence(NULL, 1, &tensor), "items is NULL");
    expect_invalid(rondo_tensor_init_sequence(items, 1, &tensor), "item 0 is none");
    expect_invalid(rondo_tensor_init_optional(&items[0], &tensor), "item 0 is none");
    OK(rondo_tensor_init(RONDO_DTYPE_F32, &pair, &items[0]));
    OK(rondo_tensor_init(RONDO_DTYPE_I32, &pair, &items[1]));
    expect_invalid(rondo_tensor_init_sequence(items, 2, &tensor), "a sequence has one type");
    rondo_tensor_deinit(&items[1]);
    OK(rondo_tensor_init_optional(&items[0], &items[1]));
    expect_invalid(rondo_tensor_init_sequence(&items[1], 1, &tensor), "item 0 is optional");
    expect_invalid(rondo_tensor_init_optional(&items[1], &tensor), "item 0 is optional");
    rondo_dlpack_managed *managed = NULL;
    OK(rondo_tensor_init(RONDO_DTYPE_STRING, &pair, &tensor));
    assert_int_equal(rondo_tensor_to_dlpack(
                         &tensor, &(rondo_dlpack_device){.type = RONDO_DLPACK_CPU}, NULL, &managed),
                     RONDO_STATUS_UNSUPPORTED);
    rondo_tensor_deinit(&tensor);
    rondo_tensor_deinit(&items[0]);
    rondo_tensor_deinit(&items[1]);
}

// Each allocation of deep copies fails once.
static bool fail_now(void *user_data) {
    size_t *left = user_data;
    return (*left)-- == 0;
}

TEST(test_tensor_elements__copies_fail_cleanly) {
    const rondo_string words[] = {{"a", 1}, {"b", 1}};
    rondo_tensor items[2];
    rondo_tensor sequence;
    rondo_tensor optional;
    OK(rondo_tensor_init_strings(&pair, words, &items[0]));
    OK(rondo_tensor_init_strings(&pair, words, &items[1]));
    OK(rondo_tensor_init_sequence(items, 2, &sequence));
    OK(rondo_tensor_init_optional(&sequence, &optional));
    rondo_status status = RONDO_STATUS_NO_MEMORY;
    size_t n = 0;
    for (; status == RONDO_STATUS_NO_MEMORY; ++n) {
        size_t left = n;
        rondo_tensor copy = {.dtype = RONDO_DTYPE_F32};
        rondo__memory_set_fault(fail_now, &left);
        status = rondo__tensor_copy(&optional, &copy);
        rondo__memory_set_fault(NULL, NULL);
        assert_int_equal(copy.dtype,
                         status == RONDO_STATUS_OK ? RONDO_DTYPE_OPTIONAL : RONDO_DTYPE_NONE);
        rondo_tensor_deinit(&copy);
    }
    OK(status);
    assert_true(n > 5);
    rondo_tensor_deinit(&items[0]);
    rondo_tensor_deinit(&items[1]);
    rondo_tensor_deinit(&sequence);
    rondo_tensor_deinit(&optional);
}

TEST_MAIN()
