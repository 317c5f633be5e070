// A cancel between two runs does nothing, so it is repeated each second until somebody has seen
// that Ctrl-C came.
// SPDX-License-Identifier: Apache-2.0

#include "interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t has_come;      // written by the handler alone
static rondo_executor *volatile cancelled;  // while it is caught

static void cancel(void) {
    // One atomic exchange, so it may be called here.
    (void)!rondo_executor_cancel(cancelled);
    (void)alarm(1);
}

static void note(int number) {
    (void)number;
    has_come = 1;
    cancel();
}

static void note_only(int number) {
    (void)number;
    has_come = 1;
}

static void repeat(int number) {
    static const char text[] =
        "rondo: interrupted; waiting for what runs (Ctrl-C again ends all)\n";
    static volatile sig_atomic_t is_said;
    (void)number;
    if (!is_said) {
        (void)!write(STDERR_FILENO, text, sizeof text - 1);
        is_said = 1;
    }
    cancel();
}

static void set_handler(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(number, &action, NULL);
}

void cli_interrupt_catch(rondo_executor *executor) {
    cancelled = executor;
    set_handler(SIGALRM, repeat, SA_RESTART);
    set_handler(SIGINT, note, SA_RESTART | (int)SA_RESETHAND);
}

void cli_interrupt_watch(void) {
    set_handler(SIGTERM, note_only, SA_RESTART | (int)SA_RESETHAND);  // of launchers and schedulers
    set_handler(SIGINT, note_only, SA_RESTART | (int)SA_RESETHAND);
}

void cli_interrupt_release(void) {
    set_handler(SIGINT, SIG_DFL, 0);
    set_handler(SIGALRM, SIG_IGN, 0);
    (void)alarm(0);
}

bool cli_interrupt_came(void) {
    return has_come != 0;
}
