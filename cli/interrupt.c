// SPDX-License-Identifier: Apache-2.0

#include "interrupt.h"

#include <signal.h>
#include <string.h>

static volatile sig_atomic_t has_come;  // written by the handler alone

static void note(int number) {
    (void)number;
    has_come = 1;
}

static void set_handler(void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
}

void cli_interrupt_catch(void) {
    set_handler(note, SA_RESTART | (int)SA_RESETHAND);
}

void cli_interrupt_release(void) {
    set_handler(SIG_DFL, 0);
}

bool cli_interrupt_came(void) {
    return has_come != 0;
}
