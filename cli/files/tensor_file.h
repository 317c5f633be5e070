// tensor_file.h — tensors from files of every kind the tool reads.
//
//   .npy            one array; the type and shape are in the file
//   .npz            an archive of arrays; FILE.npz:NAME picks one
//   .pb             a TensorProto, as ONNX test directories hold, or what the wish's port is
//   .bin .raw .dat  nothing but elements, little endian; the type and shape are those wanted
//   a folder        a sequence: its items are 0.npy, 1.npy and so on
//
// .npy and .npz are known by their first bytes, whatever their name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "rondo/program.h"
#include "rondo/tensor.h"

// What a reader may count on; used for raw files, and to choose in an archive.
typedef struct cli_tensor_wish {
    const char *name;        // the entry of an archive that has more than one
    rondo_dtype dtype;       // NONE: not known
    rondo_shape shape;       // rank -1: not known; one extent may be -1: what the size says
    const rondo_port *port;  // what it is for; NULL: nothing but a tensor
} cli_tensor_wish;

// Reads one tensor. On failure prints why.
//
// Ownership: free *out_tensor with rondo_tensor_deinit.
bool cli_tensor_file_read(const char *path, const cli_tensor_wish *wish, rondo_tensor *out_tensor);

// Named tensors.
typedef struct cli_tensor_set {
    size_t count;
    size_t capacity;
    char **names;
    rondo_tensor *tensors;
    size_t string_count;  // in all of them
} cli_tensor_set;

// Reads a file, or every tensor file of a folder and of the folders in it (sequences, whose items
// are called "NAME/0"). Names are those of the archive, or those that TensorProtos carry, or file
// names without their ending. On failure prints why.
//
// Ownership: free with cli_tensor_set_free.
bool cli_tensor_set_read(const char *path, cli_tensor_set *out_set);
void cli_tensor_set_free(cli_tensor_set *set);

// Writes the file name of a tensor into `buffer`: `name` with '_' for what does not belong into
// one, and `number` behind it when that is more than 1. Never empty, never with a slash.
void cli_tensor_file_name(const char *name, size_t number, char *buffer, size_t buffer_bytes);
