// onnx/saved_variables.h — variables of a program in a file.
//
// The input is in the file as any other; where it starts with a tensor, that is its initializer,
// so that other readers see an input with a default. An entry of the model's metadata makes it a
// variable: the key "rondo.variable: NAME" with the value "KIND A B SEED FAN_IN FAN_OUT UPDATE",
// in numbers, where UPDATE, the name of the output, may be missing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "onnx.pb-c.h"
#include "program/program.h"

#define RONDO__VARIABLE_KEY "rondo.variable: "
enum { RONDO__VARIABLE_NUMBERS_MAX = 160 };  // bytes of all but the update's name

// Writes the numbers of a start, with a blank behind each, to a buffer of that size.
void rondo__variable_write_numbers(const rondo_start *start, char *buffer);

// Makes variables of the inputs that the metadata names.
//
// Errors:    BAD_DATA (an entry that cannot be read), NO_MEMORY.
// Threads:   one thread per program.
RONDO_MUST_USE rondo_status rondo__variables_read(const Onnx__ModelProto *model,
                                                  rondo_program *program);
