// doctor/inject/inject_place.h — where in the program a call was made.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_DOCTOR_INJECT_INJECT_PLACE_H
#define RONDO_DOCTOR_INJECT_INJECT_PLACE_H

#include <stdint.h>

// The number of a text such as "read_loss (train.so)"; 0 for calls that are not looked at, and for
// most of those that come often.
uint32_t rondo__inject_find_place(uint16_t call);

#endif  // RONDO_DOCTOR_INJECT_INJECT_PLACE_H
