// rondo/allocator.h: the library uses the program's heap, and gives everything back to it.
// SPDX-License-Identifier: Apache-2.0
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "rondo/rondo.h"
#include "support/test.h"

// Blocks of this heap have a mark in front, so that one of another heap is noticed.
typedef struct mark {
    _Alignas(64) uint64_t word;
    void *block;
    size_t bytes;
} mark;

static const uint64_t is_ours = 0x6f6c6c6165704852u;
static atomic_int taken_count;
static atomic_int given_count;
static atomic_bool is_empty;

static void *allocate(void *user_data, size_t bytes, size_t alignment) {
    assert_ptr_equal(user_data, &is_empty);
    assert_true(bytes > 0 && (alignment & (alignment - 1)) == 0);
    char *block =
        atomic_load(&is_empty) ? NULL : calloc(1, bytes + 2 * alignment + 2 * sizeof(mark));
    if (block == NULL) {
        return NULL;
    }
    const size_t step = alignment > sizeof(mark) ? alignment : sizeof(mark);
    uintptr_t address = ((uintptr_t)block + sizeof(mark) + step - 1) / step * step;
    *((mark *)address - 1) = (mark){.word = is_ours, .block = block, .bytes = bytes};
    memset((void *)address, 0xEE, bytes);
    atomic_fetch_add(&taken_count, 1);
    return (void *)address;
}

static void give_back(void *user_data, void *address) {
    assert_ptr_equal(user_data, &is_empty);
    mark *head = (mark *)address - 1;
    assert_true(head->word == is_ours);
    head->word = 0;
    free(head->block);
    atomic_fetch_add(&given_count, 1);
}

static void *reallocate(void *user_data, void *address, size_t bytes) {
    void *moved = allocate(user_data, bytes, sizeof(void *));
    if (moved != NULL) {
        const size_t before = ((mark *)address - 1)->bytes;
        memcpy(moved, address, before < bytes ? before : bytes);
        give_back(user_data, address);
    }
    return moved;
}

static const rondo_allocator ours = {.struct_size = sizeof ours,
                                     .allocate = allocate,
                                     .reallocate = reallocate,
                                     .free = give_back,
                                     .user_data = &is_empty};

TEST(test_base_allocator__all_of_it_goes_through_the_program) {
    assert_int_equal(rondo_set_allocator(NULL), RONDO_STATUS_INVALID);
    rondo_allocator part = ours;
    part.reallocate = NULL;
    assert_int_equal(rondo_set_allocator(&part), RONDO_STATUS_INVALID);
    assert_int_equal(rondo_set_allocator(&ours), RONDO_STATUS_OK);
    rondo_device *device = NULL;
    rondo_stream *stream = NULL;
    rondo_graph *graph = NULL;
    void *memory = NULL;
    assert_int_equal(rondo_device_open("host", &device), RONDO_STATUS_OK);
    const rondo_stream_options first = {.struct_size = sizeof first, .priority = 1};
    assert_int_equal(rondo_stream_create(device, &first, &stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_create(device, NULL, &graph), RONDO_STATUS_OK);
    assert_int_equal(rondo_memory_allocate(device, RONDO_MEMORY_DEVICE, 64, &memory),
                     RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_capture_begin(graph, stream, RONDO_CAPTURE_THREAD_LOCAL),
                     RONDO_STATUS_OK);
    for (int i = 0; i < 100; ++i) {
        assert_int_equal(rondo_stream_fill(stream, memory, 1, 4, 16), RONDO_STATUS_OK);
    }
    assert_int_equal(rondo_graph_capture_end(graph), RONDO_STATUS_OK);
    assert_int_equal(rondo_graph_replay(graph, stream), RONDO_STATUS_OK);
    assert_int_equal(rondo_stream_synchronize(stream), RONDO_STATUS_OK);
    assert_true(atomic_load(&taken_count) > 5);
    assert_int_equal(rondo_set_allocator(&ours), RONDO_STATUS_STATE);
    atomic_store(&is_empty, true);
    rondo_graph *none = NULL;
    assert_int_equal(rondo_graph_create(device, NULL, &none), RONDO_STATUS_NO_MEMORY);
    atomic_store(&is_empty, false);
    rondo_graph_destroy(graph);
    rondo_memory_free(device, memory);
    rondo_stream_destroy(stream);
    rondo_device_release(device);
    assert_true(atomic_load(&given_count) > 5);
}

TEST_MAIN()
