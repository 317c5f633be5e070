#!/bin/sh
# check_required.sh PROGRAM — RONDO_REQUIRE is a list: a device that is not there is a failure when
# some entry is the beginning of its name, and else a skip.
# SPDX-License-Identifier: Apache-2.0
set -u
program=$1
failures=0
export CUDA_VISIBLE_DEVICES=-1  # no GPU is there for the program, also where the machine has one

check() {
    status=0
    RONDO_REQUIRE=$1 "$program" cuda:99 > /dev/null 2>&1 || status=$?
    if [ "$status" -ne "$2" ]; then
        echo "RONDO_REQUIRE=$1: exit status $status, not $2"
        failures=1
    fi
}

check "" 77
check cuda 1
check cuda,cuda2 1
check gone,cuda:9 1
check cuda2 77
check cuda:0,,host 77
exit $failures
