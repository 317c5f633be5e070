// support/variables_world.h — small programs with variables, for the tests of what executors keep:
// a program, its executor, and values of one shape. Each call fails the running test where it
// fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rondo/models.h"

enum { VARIABLES_COUNT = 64 };  // elements of each value
static const rondo_shape variables_shape = {.rank = 1, .extent = {VARIABLES_COUNT}};

typedef struct variables_world {
    rondo_device *device;  // of on_devices.h
    rondo_program *program;
    rondo_executor *executor;
} variables_world;

// Values in host memory. Borrows them.
rondo_tensor variables_on_host(float *values);
// A variable whose elements start as `start`.
void variables_add_variable(rondo_builder *b, const char *name, float start);
void variables_add_input(rondo_builder *b, const char *name);
// Numbers between -scale and scale; tests/training/make_golden.py has the same.
void variables_fill(uint32_t seed, size_t count, double scale, float *out);
// Reads a variable into memory of its size, or element 3 of it.
void variables_read_all(rondo_executor *executor, const char *name, float *values);
float variables_read_one(rondo_executor *executor, const char *name);
// Where it lies.
const void *variables_get_address(rondo_executor *executor, const char *name);
rondo_executor_stats variables_get_stats(const rondo_executor *executor);
// Finishes and destroys the builder; the executor fuses nothing.
void variables_open(variables_world *w, rondo_builder *b);
void variables_close(variables_world *w);
