// doctor/inject/inject_place.h — where in the program a call was made.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stddef.h>
#include <stdint.h>

// The number of a text such as "read_loss (train.so)"; 0 for calls that are not looked at, and for
// most of those that come often.
uint32_t rondo__inject_find_place(uint16_t call);

// A symbol as one reads it, where the program has the means: names of C++ without their marks.
void rondo__inject_read_symbol(const char *symbol, char *out, size_t bytes);
