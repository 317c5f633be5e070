// doctor/inject/inject_python.h — the line of a Python program that made a call.
//
// The call itself holds no lock of the interpreter, and must not wait for one. So it asks the
// interpreter to call back when it is at leisure, which it is as soon as the call has returned: in
// the same frame, at the same line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdint.h>

// Has the line recorded that makes this call, unless this is no Python, or another thread than the
// interpreter's main one, or the line of an earlier call is still waited for.
void rondo__inject_ask_python(uint16_t call);
