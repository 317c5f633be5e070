// executor/state/prepared.h — what a plan file has ready for an executor: the sections of
// program/saved/saved.h, looked into when their time comes.
//
// What is found is used in place of what would be made; what is not found is made. So a file that
// was made for other shapes does no harm. One that was made for another library, device or other
// options is refused, unless the caller of rondo_program_load_plan allows that its sections are
// made anew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/backend.h"
#include "executor/state/plan.h"
#include "program/saved/saved.h"

// Refuses an executor of a program from a plan file that does not fit the device.
//
// Errors:    UNSUPPORTED (says what does not fit, and the cure).
RONDO_MUST_USE rondo_status rondo__prepared_check(const rondo_program *program,
                                                  rondo_device *device);

// The file's choices of kernels.
//
// Errors:    NO_MEMORY, BAD_DATA.
// Threads:   one thread per executor; so are all functions below.
RONDO_MUST_USE rondo_status rondo__prepared_give_choices(rondo_executor *executor);

// Loads the file's machine code on the executor's device.
//
// Errors:    BAD_DATA, NO_MEMORY; where the caller does not allow that it is made anew, DRIVER.
RONDO_MUST_USE rondo_status rondo__prepared_give_kernels(rondo_executor *executor);

// Gives a new store of the program's constants on the device the forms that are ready.
//
// Errors:    NO_MEMORY, BAD_DATA.
RONDO_MUST_USE rondo_status rondo__prepared_give_forms(const rondo_program *program,
                                                       rondo_device *device,
                                                       rondo__weight_store *store);

// The base of the unit's program for the options that `key` tells; NULL: it is to be made. For the
// executor's own program only.
//
// Errors:    UNSUPPORTED (the file has none, and the caller does not allow that it is made),
//            BAD_DATA, NO_MEMORY.
// Ownership: caller destroys *out_base.
RONDO_MUST_USE rondo_status rondo__prepared_find_base(const rondo__unit *unit, const char *key,
                                                      rondo_program **out_base);

// Sets what was known, when the file was made, of inputs whose values decide shapes.
//
// Errors:    BAD_DATA.
RONDO_MUST_USE rondo_status rondo__prepared_give_keys(rondo__unit *unit, const char *key);

// The program of a plan behind its passes, by the key that plans are found by; NULL: there is none.
//
// base_key   of the unit's base.
// out_kernels  what its nodes' kernels are prepared from (rondo__prepared_list_kernels); as long as
//            the file.
//
// Errors:    BAD_DATA, NO_MEMORY.
// Ownership: caller destroys *out_program, and frees *out_halves with rondo__half_report_deinit.
RONDO_MUST_USE rondo_status rondo__prepared_find_plan(const rondo__unit *unit, const char *base_key,
                                                      const void *key, size_t key_bytes,
                                                      rondo_program **out_program,
                                                      rondo__half_report *out_halves,
                                                      rondo__record *out_kernels);

// By node; those of nodes without one are empty. NULL: there is none.
//
// Errors:    BAD_DATA, NO_MEMORY.
// Ownership: free with rondo__free.
RONDO_MUST_USE rondo_status rondo__prepared_list_kernels(const rondo__record *kernels,
                                                         size_t node_count,
                                                         rondo__record **out_list);
// Appends them.
RONDO_MUST_USE rondo_status rondo__prepared_write_kernels(rondo_device *device,
                                                          const rondo__plan *plan,
                                                          rondo__text *out);

// How entries are written; `unit` is that of the executor's program.
void rondo__prepared_write_base_head(const rondo__unit *unit, const char *key, rondo__text *out);
void rondo__prepared_write_plan_head(const char *base_key, const void *key, size_t key_bytes,
                                     const rondo__half_report *halves, rondo__text *out);
RONDO_MUST_USE rondo_status rondo__prepared_write_kernel(const rondo__kernel_code *code,
                                                         rondo__data_blocks *blocks,
                                                         rondo__text *out);
RONDO_MUST_USE rondo_status rondo__prepared_write_form(const rondo__ready_form *form,
                                                       rondo__data_blocks *blocks,
                                                       rondo__text *out);
