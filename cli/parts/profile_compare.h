// profile_compare.h — two files of `rondo profile --json`: what got faster, slower, appeared, went.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "json_reader.h"

// Reads and compares the two files. `shows_all`: also what hardly differs. On failure prints why.
bool profile_compare_files(char *const *paths, bool shows_all);

// One event in one of the two.
typedef struct profile_event {
    double calls;  // a run
    double time;   // ms a run
    double noise;  // ms a run by which that may lie off by chance; negative: not known
} profile_event;

// `runs` runs had `calls` calls, half of which took less than `median_ns`, and half of them between
// the quartiles. The time is that of so many median calls, so that a few that were held up say
// nothing; three standard errors of the median, its spread taken from the quartiles, count as
// chance. One call says nothing about chance.
profile_event profile_event_make(double runs, double calls, const double quartiles_ns[3]);

// The same of a file without quartiles, of an older version: the calls took `total_ns` together and
// each between `min_ns` and `max_ns`.
//
// The spread of calls is taken from their range: of n values from one distribution the range is so
// many standard deviations on average, whatever these are. Three standard errors of the mean count
// as chance. One call says nothing about chance.
//
// Source: Tippett, On the extreme individuals and the range of samples, Biometrika 17 (1925).
profile_event profile_event_make_old(double runs, double calls, double total_ns, double min_ns,
                                     double max_ns);

typedef enum profile_verdict {
    PROFILE_FASTER,
    PROFILE_SLOWER,
    PROFILE_SAME,     // equal, or within noise
    PROFILE_UNKNOWN,  // differs, and nothing says by how much it does by chance
} profile_verdict;

profile_verdict profile_event_judge(const profile_event *first, const profile_event *second);
