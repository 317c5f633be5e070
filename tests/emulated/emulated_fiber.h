// emulated/emulated_fiber.h — functions that stop in the middle and go on later.
// SPDX-License-Identifier: Apache-2.0
#ifndef RONDO_TESTS_EMULATED_FIBER_H
#define RONDO_TESTS_EMULATED_FIBER_H

// 0 is the caller's own stack, the others run `main` from its beginning.
enum { EMULATED_FIBERS = 1 + 8192 };

// Prepares fiber `index` to run `main`, which must switch away at its end and never return.
void emulated_fiber_start(unsigned int index, void (*main)(void));
// Leaves `from`, until something switches to it, and goes on in `to`.
void emulated_fiber_switch(unsigned int from, unsigned int to);

#endif  // RONDO_TESTS_EMULATED_FIBER_H
