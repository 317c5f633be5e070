// cache/governor.c — see governor.h.
// SPDX-License-Identifier: Apache-2.0
#include "cache/governor.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

enum {
    SLOWER_SAMPLES = 5,   // replays measured before rule 5 is asked
    SLOWER_DIVISOR = 8,   // rule 5: by more than an eighth
    TRY_PERCENT = 100,    // rule 2: a hundredth
    DOUBLE_MOST = 20,     // rule 3: at most 2^20 fold
    LOST_DIVISOR = 16,    // rule 4
    REFRESH_EVERY = 256,  // rule 6
    REFRESH_SELDOM = 4096,
    REPLAYS_FIRST = 16,      // of an object with one graph, that are all measured
    REFRESH_SAMPLES = 3,     // eager runs that must be measured in any case
    RETRY_FIRST = 16,        // runs until a failed capture is tried again
    RETRY_MOST = 10,         // times four for each failure, at most 4^10 fold
    MEMORY_COUNT = 16,       // what came so many times before counts for little
    UPDATE_TRIES_FIRST = 2,  // updates that are tried before they are compared
    UPDATE_TRY_EVERY = 32    // and again now and then
};

// Before anything was measured: a capture costs as much as four eager runs, a replay a quarter.
static const double first_capture_ratio = 4.0;
static const double first_replay_ratio = 0.25;

// ---- times ------------------------------------------------------------------------------------

void rondo__cost_add(rondo__cost *cost, uint64_t ns) {
    cost->samples[cost->sample_count % RONDO__COST_SAMPLES] = ns > 0 ? ns : 1;
    cost->sample_count += 1;
    size_t count =
        cost->sample_count < RONDO__COST_SAMPLES ? cost->sample_count : RONDO__COST_SAMPLES;
    uint64_t sorted[RONDO__COST_SAMPLES];
    for (size_t i = 0; i < count; ++i) {
        size_t at = i;
        for (; at > 0 && sorted[at - 1] > cost->samples[i]; --at) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = cost->samples[i];
    }
    cost->median_ns = sorted[(count - 1) / 2];
}

static void add_to_mean(double *mean, uint32_t *count, double value) {
    *count += *count < MEMORY_COUNT ? 1 : 0;
    *mean += (value - *mean) / (double)*count;
}

static size_t get_class(uint64_t eager_ns) {
    size_t class = 0;
    for (eager_ns >>= 8; eager_ns > 0 && class + 1 < RONDO__EXPERIENCE_CLASSES; eager_ns >>= 2) {
        ++class;
    }
    return class;
}

// Events add some microseconds to what they enclose, and keep graphs from following one another at
// once: shorter times on the device say nothing.
enum { DEVICE_NS_MIN = 50000 };

// The cost of a run: the longer of call and device time, if both ways were measured on the device.
static uint64_t get_run_ns(const rondo__measures *m, bool is_replay) {
    const rondo__cost *call = is_replay ? &m->replay : &m->eager;
    const rondo__cost *device = is_replay ? &m->replay_device : &m->eager_device;
    bool is_known = m->replay_device.sample_count > 1 && m->eager_device.sample_count > 1;
    is_known = is_known && (m->replay_device.median_ns > DEVICE_NS_MIN ||
                            m->eager_device.median_ns > DEVICE_NS_MIN);
    return is_known && device->median_ns > call->median_ns ? device->median_ns : call->median_ns;
}

// C, E and R of a key. R and C are its own where they were measured, otherwise those that keys of
// the nearest class have taught.
typedef struct expectation {
    double eager_ns;
    double replay_ns;
    double capture_ns;
} expectation;

// The class nearest to `class` in which something was counted; NONE: there is none.
enum { NONE = RONDO__EXPERIENCE_CLASSES };

static size_t find_nearest(const rondo__experience *e, size_t class, bool is_replay) {
    for (size_t distance = 0; distance < NONE; ++distance) {
        for (int side = 0; side < 2; ++side) {
            size_t at = side == 0 ? class - distance : class + distance;
            if (at < NONE &&
                (is_replay ? e->classes[at].replay_count : e->classes[at].capture_count) > 0) {
                return at;
            }
        }
    }
    return NONE;
}

static expectation expect(const rondo__measures *m, const rondo__experience *e) {
    expectation x = {.eager_ns = (double)m->eager.median_ns};
    size_t class = get_class(m->eager.median_ns);
    size_t replays = find_nearest(e, class, true);
    size_t captures = find_nearest(e, class, false);
    if (m->replay.sample_count > 0) {
        x.eager_ns = (double)get_run_ns(m, false);
        x.replay_ns = (double)get_run_ns(m, true);
    } else {
        x.replay_ns =
            x.eager_ns * (replays < NONE ? e->classes[replays].replay_ratio : first_replay_ratio);
    }
    x.capture_ns = m->capture_count > 0
                       ? (double)(m->capture_ns + m->instantiate_ns + m->update_ns)
                       : x.eager_ns * (captures < NONE ? e->classes[captures].capture_ratio
                                                       : first_capture_ratio);
    return x;
}

// ---- choices ----------------------------------------------------------------------------------

static double get_factor(const rondo__measures *m) {
    return (double)(UINT64_C(1) << (m->unpaid_count < DOUBLE_MOST ? m->unpaid_count : DOUBLE_MOST));
}

uint64_t rondo__governor_get_payback(const rondo__measures *m,
                                     const rondo__experience *experience) {
    expectation x = expect(m, experience);
    double cost = m->reason == RONDO__REASON_HELD ? (double)m->paid_ns : x.capture_ns;
    double gain = x.eager_ns - x.replay_ns;
    if (!(gain > 0) || cost / gain > 1e15) {
        return 0;
    }
    uint64_t runs = (uint64_t)(cost / gain);
    return (double)runs * gain < cost ? runs + 1 : runs;
}

static uint64_t get_retry_count(const rondo__measures *m) {
    uint32_t more = m->fail_count - 1;
    return (uint64_t)RETRY_FIRST << (2 * (more < RETRY_MOST ? more : RETRY_MOST));
}

static bool is_worth_it(const rondo__measures *m, const rondo__experience *experience) {
    if (m->eager.sample_count == 0) {
        return false;
    }
    double runs = (double)m->waiting_count;
    expectation x = expect(m, experience);
    uint64_t payback = rondo__governor_get_payback(m, experience);
    if (payback > 0 && runs >= (double)payback * get_factor(m)) {
        return true;
    }
    return x.capture_ns * get_factor(m) * TRY_PERCENT <= x.eager_ns * runs;
}

bool rondo__governor_wants_capture(rondo__measures *m, const rondo__experience *experience,
                                   rondo_cache_policy policy) {
    if (policy == RONDO_CACHE_NEVER_CAPTURE) {
        m->reason = RONDO__REASON_NEVER;
        return false;
    }
    if (m->fail_count > 0 && m->waiting_count < get_retry_count(m)) {
        m->reason = RONDO__REASON_FAILED;
        return false;
    }
    if (policy == RONDO_CACHE_ALWAYS_CAPTURE) {
        return true;
    }
    if (is_worth_it(m, experience)) {
        m->reason = m->reason == RONDO__REASON_SLOWER ? RONDO__REASON_SLOWER : RONDO__REASON_LOSSES;
        return experience->lost_ns * LOST_DIVISOR <= experience->spent_ns;
    }
    if (m->reason != RONDO__REASON_SLOWER) {
        m->reason = RONDO__REASON_COUNTING;
    }
    return false;
}

static uint64_t get_latest(const rondo__cost *cost) {
    return cost->sample_count > 0 ? cost->samples[(cost->sample_count - 1) % RONDO__COST_SAMPLES]
                                  : 0;
}

bool rondo__governor_wants_eager(const rondo__measures *m, rondo_cache_policy policy) {
    if (m->run_count % REFRESH_EVERY != 0 || policy != RONDO_CACHE_MEASURED) {
        return false;
    }
    bool is_doubtful = m->eager.sample_count < REFRESH_SAMPLES ||
                       m->replay.median_ns > get_latest(&m->eager) / 2 ||
                       get_run_ns(m, true) > get_run_ns(m, false) / 2;
    return is_doubtful || m->run_count % REFRESH_SELDOM == 0;
}

// ---- what happened ----------------------------------------------------------------------------

void rondo__governor_note_graph(rondo__measures *m, rondo__experience *experience,
                                uint64_t capture_ns, uint64_t executable_ns, bool was_patched) {
    m->capture_count += 1;
    m->capture_ns = capture_ns;
    m->instantiate_ns = was_patched ? 0 : executable_ns;
    m->update_ns = was_patched ? executable_ns : 0;
    m->paid_ns = capture_ns + executable_ns;
    m->held_replay_count = 0;
    m->waiting_count = 0;
    m->fail_count = 0;
    m->is_slower = false;
    m->reason = RONDO__REASON_HELD;
    // An older measurement says little of this graph.
    memset(&m->replay, 0, sizeof m->replay);
    memset(&m->replay_device, 0, sizeof m->replay_device);
    if (m->eager.sample_count > 0) {
        size_t class = get_class(m->eager.median_ns);
        add_to_mean(&experience->classes[class].capture_ratio,
                    &experience->classes[class].capture_count,
                    (double)m->paid_ns / (double)m->eager.median_ns);
    }
}

void rondo__governor_note_failure(rondo__measures *m, rondo__experience *experience) {
    experience->lost_ns += (double)m->eager.median_ns;  // the step was run twice
    m->fail_count += 1;
    m->waiting_count = 0;
    m->reason = RONDO__REASON_FAILED;
}

void rondo__governor_note_loss(rondo__measures *m, rondo__experience *experience) {
    double gain = (double)get_run_ns(m, false) - (double)get_run_ns(m, true);
    double lost = (double)m->paid_ns - (double)m->held_replay_count * gain;
    bool has_paid = !m->is_slower && lost <= 0;
    experience->lost_ns += lost > 0 && m->eager.sample_count > 0 ? lost : 0;
    m->unpaid_count = has_paid ? 0 : m->unpaid_count + 1;
    m->reason = m->is_slower ? RONDO__REASON_SLOWER : RONDO__REASON_COUNTING;
    m->waiting_count = 0;
    m->is_slower = false;
}

void rondo__governor_note_replay(rondo__measures *m, rondo__experience *experience, uint64_t ns,
                                 rondo_cache_policy policy) {
    rondo__cost_add(&m->replay, ns);
    if (m->eager.sample_count == 0) {
        return;
    }
    if (m->replay.sample_count == RONDO__COST_SAMPLES) {
        size_t class = get_class(m->eager.median_ns);
        add_to_mean(&experience->classes[class].replay_ratio,
                    &experience->classes[class].replay_count,
                    (double)m->replay.median_ns / (double)m->eager.median_ns);
    }
    uint64_t eager_ns = get_run_ns(m, false);
    m->is_slower = policy == RONDO_CACHE_MEASURED && m->replay.sample_count >= SLOWER_SAMPLES &&
                   get_run_ns(m, true) > eager_ns + eager_ns / SLOWER_DIVISOR;
}

bool rondo__governor_prefers_update(rondo__experience *experience) {
    experience->choice_count += 1;
    return experience->update_count < UPDATE_TRIES_FIRST || experience->instantiate_count == 0 ||
           experience->update_ns <= experience->instantiate_ns ||
           experience->choice_count % UPDATE_TRY_EVERY == 0;
}

void rondo__governor_note_executable(rondo__experience *experience, bool was_tried, uint64_t ns,
                                     uint64_t node_count) {
    double each = (double)ns / (double)(node_count > 0 ? node_count : 1);
    if (was_tried) {
        add_to_mean(&experience->update_ns, &experience->update_count, each);
    } else {
        add_to_mean(&experience->instantiate_ns, &experience->instantiate_count, each);
    }
}

// ---- objects with one graph each ---------------------------------------------------------------

rondo__choice rondo__governor_choose(rondo__governor *governor, rondo__measures *m) {
    rondo__governor_note_run(m, &governor->experience);
    if (m->is_slower) {
        rondo__governor_note_loss(m, &governor->experience);
        return RONDO__CHOICE_GIVE_UP;
    }
    if (m->reason == RONDO__REASON_HELD) {
        // A graph that was there before any eager run has nothing to be compared with yet.
        return m->eager.sample_count < REFRESH_SAMPLES ||
                       rondo__governor_wants_eager(m, RONDO_CACHE_MEASURED)
                   ? RONDO__CHOICE_EAGER
                   : RONDO__CHOICE_REPLAY;
    }
    return rondo__governor_wants_capture(m, &governor->experience, RONDO_CACHE_MEASURED)
               ? RONDO__CHOICE_CAPTURE
               : RONDO__CHOICE_EAGER;
}

bool rondo__governor_is_timed(const rondo__measures *m, rondo__choice choice) {
    if (choice == RONDO__CHOICE_EAGER || choice == RONDO__CHOICE_GIVE_UP) {
        return m->reason == RONDO__REASON_HELD || rondo__governor_is_sampled(m->eager_count);
    }
    return choice == RONDO__CHOICE_REPLAY && (m->held_replay_count < REPLAYS_FIRST ||
                                              rondo__governor_is_sampled(m->held_replay_count));
}

static uint64_t read_ns(const rondo__governor *governor, rondo__choice choice, uint64_t ns) {
    return governor->get_ns != NULL ? governor->get_ns(governor->user_data, choice) : ns;
}

void rondo__governor_note_capture(rondo__governor *governor, rondo__measures *m, uint64_t ns) {
    rondo__governor_note_graph(m, &governor->experience,
                               read_ns(governor, RONDO__CHOICE_CAPTURE, ns), 0, false);
}

void rondo__governor_note_end(rondo__governor *governor, rondo__measures *m, rondo__choice choice,
                              uint64_t ns) {
    const bool is_replay = choice >= RONDO__CHOICE_CAPTURE;
    ns = ns > 0 ? read_ns(governor, is_replay ? RONDO__CHOICE_REPLAY : RONDO__CHOICE_EAGER, ns) : 0;
    if (is_replay) {
        if (ns > 0) {
            rondo__governor_note_replay(m, &governor->experience, ns, RONDO_CACHE_MEASURED);
            // The first replays of a graph may be slow: copies are made for what is in flight.
            m->is_slower = m->is_slower && m->replay.sample_count > RONDO__COST_SAMPLES;
        }
        m->held_replay_count += 1;
        m->replay_count += 1;
        return;
    }
    if (ns > 0) {
        rondo__cost_add(&m->eager, ns);
    }
    m->eager_count += 1;
    m->waiting_count += m->reason != RONDO__REASON_HELD ? 1 : 0;
}

// ---- in words ---------------------------------------------------------------------------------

rondo__duration rondo__duration_format(double ns) {
    static const char *const units[] = {"ns", "us", "ms", "s"};
    size_t unit = 0;
    for (; ns >= 999.5 && unit + 1 < sizeof units / sizeof *units; ++unit) {
        ns /= 1000;
    }
    rondo__duration d;
    (void)rondo__text_print(d.text, sizeof d.text, ns < 9.95 && unit > 0 ? "%.1f %s" : "%.0f %s",
                            ns, units[unit]);
    return d;
}

static const char *get_plural(uint64_t count) {
    return count == 1 ? "" : "s";
}

static void explain_graph(const rondo__measures *m, const rondo__experience *experience,
                          rondo_cache_policy policy, char *out, size_t bytes) {
    rondo__duration replay = rondo__duration_format((double)get_run_ns(m, true));
    rondo__duration eager = rondo__duration_format((double)get_run_ns(m, false));
    uint64_t payback = rondo__governor_get_payback(m, experience);
    if (m->replay.sample_count == 0) {
        snprintf(out, bytes, "replay: captured for the next run");
    } else if (m->eager.sample_count == 0) {
        snprintf(out, bytes, "replay: %s; the policy captures always, so eager is not known",
                 replay.text);
    } else if (m->is_slower) {
        snprintf(out, bytes, "eager from now on: %s replayed against %s eager", replay.text,
                 eager.text);
    } else if (payback == 0) {
        snprintf(out, bytes, "replay: %s against %s eager; nothing gained so far", replay.text,
                 eager.text);
    } else {
        snprintf(out, bytes, "replay: %s against %s eager; %s after %llu run%s%s", replay.text,
                 eager.text, m->held_replay_count >= payback ? "paid back" : "pays back",
                 (unsigned long long)payback, get_plural(payback),
                 policy == RONDO_CACHE_ALWAYS_CAPTURE ? "; the policy captures always" : "");
    }
}

static void explain_counting(const rondo__measures *m, const rondo__experience *experience,
                             char *out, size_t bytes) {
    rondo__duration eager = rondo__duration_format((double)m->eager.median_ns);
    uint64_t payback = rondo__governor_get_payback(m, experience);
    expectation x = expect(m, experience);
    if (m->eager.sample_count == 0) {
        snprintf(out, bytes, "eager: not measured yet");
    } else if (payback == 0) {
        snprintf(out, bytes, "eager: %s, and a replay is expected to take %s", eager.text,
                 rondo__duration_format(x.replay_ns).text);
    } else {
        int length = snprintf(out, bytes,
                              "eager: %s; a capture should cost %s and pay back after %llu run%s, "
                              "and the key came %llu time%s",
                              eager.text, rondo__duration_format(x.capture_ns).text,
                              (unsigned long long)payback, get_plural(payback),
                              (unsigned long long)m->waiting_count, get_plural(m->waiting_count));
        if (m->unpaid_count > 0 && length > 0 && (size_t)length < bytes) {
            snprintf(out + length, bytes - (size_t)length,
                     " since its graph went before it had paid back (%u in a row: %.0f times as "
                     "many are asked for)",
                     (unsigned)m->unpaid_count, get_factor(m));
        }
    }
}

void rondo__governor_explain(const rondo__measures *m, const rondo__experience *experience,
                             rondo_cache_policy policy, const char *failure, char *out_text,
                             size_t bytes) {
    switch (m->reason) {
        case RONDO__REASON_NOT_RUN:
            snprintf(out_text, bytes, "not run yet");
            break;
        case RONDO__REASON_NEVER:
            snprintf(out_text, bytes, "eager: the policy never captures");
            break;
        case RONDO__REASON_FAILED:
            snprintf(out_text, bytes,
                     "eager: no graph came of it (tried again after %llu runs): %s",
                     (unsigned long long)get_retry_count(m),
                     failure != NULL ? failure : "memory is short");
            break;
        case RONDO__REASON_SLOWER:
            snprintf(out_text, bytes, "eager: %s against %s replayed",
                     rondo__duration_format((double)get_run_ns(m, false)).text,
                     rondo__duration_format((double)get_run_ns(m, true)).text);
            break;
        case RONDO__REASON_LOSSES:
            snprintf(
                out_text, bytes,
                "eager: %s; graphs that went before they had paid back have lost %s, more than "
                "a sixteenth of all runs so far, so none is captured for now",
                rondo__duration_format((double)m->eager.median_ns).text,
                rondo__duration_format(experience->lost_ns).text);
            break;
        case RONDO__REASON_PINNED:
            snprintf(out_text, bytes, "eager: all graphs that may be held are pinned");
            break;
        case RONDO__REASON_BACKGROUND:
            snprintf(out_text, bytes, "eager: a capture runs in the background");
            break;
        case RONDO__REASON_HELD:
            explain_graph(m, experience, policy, out_text, bytes);
            break;
        case RONDO__REASON_COUNTING:
            explain_counting(m, experience, out_text, bytes);
            break;
    }
}

void rondo__governor_describe(const rondo__governor *governor, const rondo__measures *m,
                              rondo__text *text, bool is_json) {
    enum { LINE_BYTES = 320 };
    char line[LINE_BYTES];
    rondo__governor_explain(m, &governor->experience, RONDO_CACHE_MEASURED, NULL, line,
                            sizeof line);
    if (!is_json) {
        rondo__text_append(text, "graphs measured: %s\n", line);
        return;
    }
    rondo__text_append(text, "{\"choice\": \"%s\", \"reason\": ",
                       m->reason == RONDO__REASON_HELD && !m->is_slower ? "replay" : "eager");
    rondo__text_append_json(text, line);
    rondo__text_append(text, ", \"eager_ns\": %llu, \"replay_ns\": %llu}",
                       (unsigned long long)m->eager.median_ns,
                       (unsigned long long)m->replay.median_ns);
}
