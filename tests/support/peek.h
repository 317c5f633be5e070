// support/peek.h — what the conformance suite takes from inside the library. The suite itself
// includes public headers only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rondo/device.h"

// A kernel of a text in CUDA C++, compiled for the device, as Rondo compiles its own.
rondo_status peek_compile(rondo_device *device, const char *text, const char *name,
                          void **out_function);

// From now on "null:0" can be opened: the backend that records and runs nothing.
void peek_install_null(void);

// How many areas rondo_memory_allocate has given out.
size_t peek_count_areas(const rondo_device *device);

// How many areas of the device's memory the backend has given out since peek_begin_counting, less
// those that it took back. On CUDA the backend's table is replaced until peek_end_counting; the
// host is known by its table, so there the areas are counted. One device at a time.
void peek_begin_counting(rondo_device *device);
long peek_count_allocations(void);
void peek_end_counting(rondo_device *device);

// From now on every allocation of the library fails; false: none does.
void peek_fail_allocations(bool do_fail);

// As after an error that poisons the device; false: as if nothing had been.
void peek_set_lost(rondo_device *device, bool is_lost);

// The number that reports and messages call a stream by.
uint32_t peek_get_number(const rondo_stream *stream);
