// rondo/tuning.h — which kernels are the fastest, found once and shipped with a model.
//
// For each product and convolution of a plan a GPU backend has a few ways, and times them when it
// first meets the problem (rondo_tuning in rondo/executor.h). What it chose can be written to a
// tuning file, a text, and read by executors on other machines with the same kind of GPU, which
// then time nothing:
//
//   rondo_executor_describe_feeds(executor, feeds, count, RONDO_TEXT_PLAIN, ignore, NULL);
//   rondo_executor_write_tuning(executor, append_to_file, file);      // here
//   options.tuning_file = "model.tuning";                             // there
//
// A file may hold several kinds of GPU and many shapes. A choice goes before one of the cache on
// disk; a problem that the file does not hold, and a choice that this machine cannot follow (a
// library of another version), are treated as without a file. Results do not depend on choices but
// for rounding.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TUNING_H
#define RONDO_TUNING_H

#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/status.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

// Writes what the executor's tuning file held, and what the executor's plans chose since, as a
// tuning file. On the host nothing is chosen.
//
// Errors:    INVALID (NULL), NO_MEMORY. What `write` refuses is lost without an error.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_write_tuning(rondo_executor *executor,
                                                                  rondo_write_function write,
                                                                  void *user_data);

RONDO_EXTERN_C_END

#endif  // RONDO_TUNING_H
