// support/add_world.h — the program of add_program.h, loaded: a device, an executor, and tensors on
// the device. Each call fails the running test where something fails.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>

#include "rondo/models.h"
#include "support/models/add_program.h"

typedef struct add_world {
    rondo_device *device;  // of on_devices.h
    rondo_stream *stream;  // of the program
    rondo_graph *graph;
    rondo_program *program;
    rondo_executor *executor;
    rondo_tensor x, y, s;  // on the device
} add_world;

// is_on_stream   the executor runs on `stream`, not on one of its own.
//
// Ownership: add_world_close; there is one at a time.
add_world *add_world_open(rondo_graphs_mode graphs, bool is_on_stream);
// Destroys what is there: tests may have destroyed and cleared a part of it before.
void add_world_close(add_world *w);

// Writes first, first + 1, ... to a tensor, and reads one, on a stream that is then waited for.
void add_world_write(rondo_stream *stream, const rondo_tensor *to, float first);
void add_world_read(rondo_stream *stream, const rondo_tensor *from, float *values);
// Whether the tensor is y (is_y) or s for such an x.
void add_world_expect(rondo_stream *stream, const rondo_tensor *tensor, float first, bool is_y);
