// rondo/tuning.h — what an executor has found out, shipped with a model: tuning files, and plan
// files, which hold all that was made of the model.
//
// Tuning files. For each product and convolution of a plan a GPU backend has a few ways, and times
// them when it first meets the problem (rondo_tuning in rondo/executor.h). What it chose can be
// written to a tuning file, a text, and read by executors on other machines with the same kind of
// GPU, which then time nothing:
//
//   rondo_executor_describe_feeds(executor, feeds, count, RONDO_TEXT_PLAIN, ignore, NULL);
//   rondo_executor_write_tuning(executor, append_to_file, file);      // here
//   options.tuning_file = "model.tuning";                             // there
//
// A file may hold several kinds of GPU and many shapes. A choice goes before one of the cache on
// disk; a problem that the file does not hold, and a choice that this machine cannot follow (a
// library of another version), are treated as without a file. Results do not depend on choices but
// for rounding.
//
// FULL times kernels one by one, and the fastest of each may make a slower network. rondo tune
// compares whole networks and takes slower choices back; an executor does not. A program of its own
// can do as rondo tune does: an executor with RONDO_TUNING_KEEP, whose tuning file has the choices
// of before, takes back those on disk.
//
// Plan files. A new process that reads a model parses it, rewrites it, packs its weights and
// compiles kernels before its first result. A plan file holds what comes of that:
//
//   rondo_executor_run(executor, feeds, feed_count, fetches, fetch_count);   // each shape once
//   rondo_executor_save(executor, "model.rondo");
//
//   rondo_executor_load("model.rondo", device, NULL, NULL, &program, &executor);   // elsewhere
//   rondo_executor_run(executor, feeds, feed_count, fetches, fetch_count);
//
// It holds the program, what passes have made of it for the shapes that were run, weights as they
// are and as kernels want them (mapped, not copied), choices of kernels, and machine code for the
// kind of GPU that it was made on. Results are the same as without it, bit for bit. Other shapes
// work, too: what the file lacks is made. A file serves one version of Rondo, one kind of device
// (the generation of a GPU, the instruction sets of a processor) and one set of options; for
// others, and where it was cut short or altered, it is refused by name. Graphs are recorded anew in
// each process, and states and results are not in the file.
//
// Checksums find damage and not malice: who can write a plan file can make the process do anything,
// as with a shared library.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TUNING_H
#define RONDO_TUNING_H

#include <stdbool.h>
#include <stddef.h>

#include "rondo/executor.h"
#include "rondo/export.h"
#include "rondo/program.h"
#include "rondo/status.h"
#include "rondo/text.h"

RONDO_EXTERN_C_BEGIN

// Writes what the executor's tuning file held, and what the executor's plans chose since, as a
// tuning file. On the host nothing is chosen.
//
// What `write` refuses is lost without an error.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_write_tuning(rondo_executor *executor,
                                                                  rondo_write_function write,
                                                                  void *user_data);

// ---- plan files -------------------------------------------------------------------------------

// Writes a plan file: what the executor has made of its program so far. Plans of optional inputs
// that were fed, bodies that wait for shapes, and states are left out; of a program with ops of the
// program's own (rondo/user_op.h), all but the program itself and the choices.
//
// path       replaced as a whole, or left as it is.
//
// Errors:    UNAVAILABLE (the file cannot be written), and as rondo_executor_run.
// Cost:      one more rewrite of each plan's program; reads forms of weights back from a GPU.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_save(rondo_executor *executor,
                                                          const char *path);

typedef struct rondo_plan_options {
    size_t struct_size;  // sizeof(rondo_plan_options)
    // Where the file was made for another version, device or other options, make anew what does not
    // fit, instead of refusing. A file that was cut short or altered is refused all the same.
    bool allow_remake;
    // The program that the file must have been made of, to notice that the model has changed;
    // borrowed for the call. NULL: any.
    const rondo_program *made_of;
} rondo_plan_options;

// Reads the program of a plan file. Executors that are created from it find there what the file
// holds.
//
// Errors:    BAD_DATA (no plan file, cut short, altered: the section is named), UNSUPPORTED
//            (another version of the file; an op that is not registered), INVALID (made of another
//            model), UNAVAILABLE (it cannot be opened). rondo_executor_create refuses a
//            device or options that the file was not made for: UNSUPPORTED.
// Ownership: caller destroys *out_program. The file must not be changed while the program lives:
//            reading a mapped file that was cut raises SIGBUS.
// Cost:      the whole file is read once, for its checksums.
RONDO_API RONDO_MUST_USE rondo_status rondo_program_load_plan(const char *path,
                                                              const rondo_plan_options *options,
                                                              rondo_program **out_program);

// The options that the program's plan file was made with, to be changed where that does no harm
// (graphs, threads, limits, progress) and given to rondo_executor_create.
//
// Errors:    STATE (the program does not come from a plan file).
// Ownership: patterns are borrowed from the program.
RONDO_API RONDO_MUST_USE rondo_status
rondo_program_get_plan_options(const rondo_program *program, rondo_executor_options *out_options);

// Both steps: the program, and an executor of it.
//
// executor_options   NULL: those that the file was made with.
// out_program        NULL: not wanted.
//
// Errors:    as rondo_program_load_plan and rondo_executor_create.
// Ownership: caller destroys *out_program and *out_executor.
RONDO_API RONDO_MUST_USE rondo_status rondo_executor_load(
    const char *path, rondo_device *device, const rondo_executor_options *executor_options,
    const rondo_plan_options *plan_options, rondo_program **out_program,
    rondo_executor **out_executor);

// Writes what is in a plan file: what it was made for, its sections, the shapes that it has plans
// for. Any device's file can be shown.
//
// format     RONDO_TEXT_PLAIN or RONDO_TEXT_JSON.
//
// Errors:    as rondo_program_load_plan.
RONDO_API RONDO_MUST_USE rondo_status rondo_plan_describe(const char *path,
                                                          rondo_text_format format,
                                                          rondo_write_function write,
                                                          void *user_data);

RONDO_EXTERN_C_END

#endif  // RONDO_TUNING_H
