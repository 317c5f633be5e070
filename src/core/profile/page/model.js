// The data of the page, as write_html.c wrote it: numbers in arrays, texts by their index.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);

// Names come from models, and models from strangers: they are only ever put in as text.
function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  Object.assign(element, properties);
  for (const child of children) {
    element.append(child);
  }
  return element;
}

function get(id) {
  return document.getElementById(id);
}

function formatTime(ns) {
  if (ns === 0) return "0";
  const steps = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
  const size = Math.abs(ns);
  const [unit, name] = steps.find(([step]) => size >= step) || steps[3];
  const value = ns / unit;
  const digits = unit === 1 ? 0 : Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 10 ? 2 : 3;
  return value.toFixed(digits) + " " + name;
}

function formatBytes(bytes) {
  const names = ["B", "KiB", "MiB", "GiB", "TiB"];
  let step = 0;
  let value = bytes;
  while (value >= 1024 && step + 1 < names.length) {
    value /= 1024;
    step++;
  }
  return (step === 0 ? value : value.toFixed(1)) + " " + names[step];
}

function formatRatio(part, whole) {
  return whole > 0 ? (100 * part / whole).toFixed(1) + " %" : "";
}

// The colour of a kind of event: a variable of the style sheet.
const colourOf = {
  user: "program", run: "run", plan: "plan", tune: "plan", capture: "capture",
  instantiate: "capture", patch: "capture", replay: "replay", op: "op", compute: "compute",
  copy: "copy", wait: "wait", allocate: "memory", kernel: "kernel", memcpy: "copy",
  memset: "memory", "host function": "host", graph: "replay", other: "other",
};

const spans = data.spans.map((s, i) => ({
  id: i + 1, parent: s[0], thread: s[1], kind: data.categories[s[2]], name: data.texts[s[3]],
  detail: data.texts[s[4]], begin: s[5], end: s[5] + s[6], bytes: s[7], way: data.ways[s[8]],
  isAsync: s[9] === 1, depth: 0,
}));
for (const span of spans) {
  span.depth = span.parent > 0 ? spans[span.parent - 1].depth + 1 : 0;
}

const works = data.works.map((w) => ({
  span: w[0], kind: data.kinds[w[1]], way: data.ways[w[2]],
  name: data.texts[w[4]] || data.texts[w[3]], detail: data.texts[w[4]] ? data.texts[w[3]] : "",
  label: data.texts[w[4]], track: w[5], bytes: w[6], begin: w[7], end: w[7] + w[8],
  isAsync: false,
}));

const samples = data.samples.map((s) => ({name: data.texts[s[0]], time: s[1], value: s[2]}));

const rowFields = ["parent", "thread", "category", "isWork", "name", "detail", "calls", "total",
                   "cpu", "gpu", "min", "max", "bytes"];
const parts = data.parts.map((part) => ({...part, rows: part.rows.map((values, index) => {
  const row = {index};
  rowFields.forEach((field, i) => { row[field] = values[i]; });
  row.name = data.texts[row.name];
  row.detail = data.texts[row.detail];
  row.ave = row.calls > 0 ? row.total / row.calls : 0;
  return row;
})}));

// The span of `id` and those around it, innermost first.
function* climb(id) {
  while (id > 0) {
    const span = spans[id - 1];
    yield span;
    id = span.parent;
  }
}

// Which op a piece of work belongs to: what its graph's node is labelled, else the op around the
// call that put it there.
function nameOpOfWork(work) {
  if (work.label !== "") {
    return work.label;
  }
  for (const span of climb(work.span)) {
    if (span.kind === "op" || span.kind === "compute") {
      return span.name;
    }
  }
  return work.kind === "memcpy" && work.way !== "" ? "copy " + work.way : work.name;
}

function isWithin(item, part) {
  return item.begin >= part.begin && item.begin < part.end;
}

// Time of each op within a part: of its device work; of ops that the processor computed, of them.
function sumOps(part) {
  const sums = new Map();
  const add = (name, ns) => {
    const sum = sums.get(name) || {calls: 0, total: 0, squares: 0};
    sum.calls++;
    sum.total += ns;
    sum.squares += ns * ns;
    sums.set(name, sum);
  };
  const isTold = new Set();  // spans whose time stands under what is inside
  const tell = (id) => {
    for (const span of climb(id)) {
      isTold.add(span.id);
    }
  };
  for (const work of works) {
    if (isWithin(work, part)) {
      add(nameOpOfWork(work), work.end - work.begin);
      tell(work.span);
    }
  }
  for (const kind of ["compute", "op"]) {
    for (const span of spans) {
      if (span.kind === kind && isWithin(span, part) && !isTold.has(span.id)) {
        const op = [...climb(span.id)].find((outer) => outer.kind === "op") || span;
        add(op.name, span.end - span.begin);
        tell(span.parent);
      }
    }
  }
  return sums;
}

// Three standard errors of an average time; infinite for one call, which says nothing about chance.
function noiseOf(sum) {
  const average = sum.total / sum.calls;
  const variance = Math.max(sum.squares / sum.calls - average * average, 0);
  return sum.calls > 1 ? 3 * Math.sqrt(variance / (sum.calls - 1)) : Infinity;
}

// The run of a part whose duration is the median, with what it put on devices.
function findMedianRun(part) {
  const runs = spans.filter((span) => span.kind === "run" && isWithin(span, part) &&
    ![...climb(span.parent)].some((outer) => outer.kind === "run"));  // runs of bodies
  if (runs.length === 0) {
    return {begin: part.begin, end: part.end, count: 0};
  }
  const sorted = [...runs].sort((a, b) => (a.end - a.begin) - (b.end - b.begin));
  const run = sorted[Math.floor((sorted.length - 1) / 2)];
  const next = runs.find((other) => other.begin > run.begin);
  let end = run.end;
  for (const work of works) {
    if (work.begin >= run.begin && work.begin < run.end && (!next || work.end <= next.begin)) {
      end = Math.max(end, work.end);
    }
  }
  return {begin: run.begin, end, count: runs.length};
}
