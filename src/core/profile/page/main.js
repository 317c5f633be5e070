// The sections of the page. SPDX-License-Identifier: Apache-2.0

const whole = {begin: 0, end: data.duration};

function showHead() {
  document.title = data.title;
  get("title").textContent = data.title;
  get("about").textContent = `Rondo ${data.rondo}. Times of devices: ${data.source}. ` +
    `${formatTime(data.duration)} in all, ${data.spanCount} events and ${data.workCount} pieces ` +
    "of device work.";
  const warnings = [];
  if (data.dropped > 0) {
    warnings.push(`${data.dropped} records did not fit and were dropped.`);
  }
  if (data.spanCount > spans.length || data.workCount > works.length) {
    warnings.push(`The timeline has the first ${spans.length} events and ${works.length} pieces ` +
      "of work; the tables have all.");
  }
  get("warning").textContent = warnings.join(" ");
  get("warning").hidden = warnings.length === 0;
}

// ---- the cards --------------------------------------------------------------------------------

function addFact(list, name, value, ratio, colour) {
  const term = make("dt", {}, name);
  if (colour) {
    const key = make("span", {className: "key"});
    key.style.background = `var(--${colour})`;
    term.prepend(key);
  }
  list.append(term, make("dd", {textContent: value}), make("dd", {textContent: ratio}));
}

function countRuns(part) {
  return findMedianRun(part).count;
}

function makeCard(part) {
  const runs = countRuns(part);
  const list = make("dl");
  addFact(list, "computation", formatTime(part.computation),
          formatRatio(part.computation, part.total), "compute");
  addFact(list, "framework", formatTime(part.framework), formatRatio(part.framework, part.total),
          "wait");
  for (const [name, [calls, ns, bytes]] of [["copies, async", part.async], ["copies, sync", part.sync]]) {
    if (calls === 0) continue;
    addFact(list, `${name}: ${calls}`, formatTime(ns), formatBytes(bytes));
  }
  const split = make("div", {className: "split"});
  for (const [ns, colour] of [[part.computation, "compute"], [part.framework, "wait"]]) {
    const piece = make("span");
    piece.style.background = `var(--${colour})`;
    piece.style.width = (part.total > 0 ? 100 * ns / part.total : 0) + "%";
    split.append(piece);
  }
  const each = runs > 0 ? `${formatTime(part.total / runs)} a run, ${runs} run${runs === 1 ? "" : "s"}`
                        : "";
  return make("div", {className: "card"}, make("h3", {textContent: part.name}),
              make("div", {className: "total", textContent: formatTime(part.total)}),
              make("div", {className: "quiet", textContent: each}), split, list);
}

// ---- two parts side by side -------------------------------------------------------------------

function fillChoice(select, chosen) {
  select.replaceChildren(...parts.map((part, i) => make("option", {value: i, textContent: part.name})));
  select.value = chosen;
}

// How the averages compare; what may be chance has no colour.
function addRatio(line, left, right) {
  const cell = make("td");
  if (left && right && left.total > 0) {
    const [before, after] = [left, right].map((sum) => sum.total / sum.calls);
    const isChance = !(Math.abs(after - before) > Math.hypot(noiseOf(left), noiseOf(right)));
    cell.textContent = "\u00d7 " + (after / before).toFixed(2);
    cell.className = isChance ? "chance" : after < before ? "faster" : "slower";
    cell.title = isChance ? "within noise" : "";
  }
  line.append(cell);
}

function drawBesideTable(left, right, search) {
  const sums = [sumOps(left), sumOps(right)];
  const names = [...new Set([...sums[0].keys(), ...sums[1].keys()])]
    .filter((name) => name.toLowerCase().includes(search));
  const weigh = (name) => Math.max(...sums.map((sum) => (sum.get(name) || {total: 0}).total));
  names.sort((a, b) => weigh(b) - weigh(a));
  const head = make("tr", {}, ...["Op", "calls", left.name + " ave", "calls", right.name + " ave", "ratio"]
    .map((textContent) => make("th", {scope: "col", textContent})));
  const body = make("tbody");
  for (const name of names.slice(0, 1000)) {
    const line = make("tr", {}, make("td", {className: "name"},
      make("span", {}, make("span", {className: "text", title: name, textContent: name}))));
    for (const sum of sums) {
      const op = sum.get(name);
      line.append(make("td", {textContent: op ? op.calls : ""}),
                  make("td", {textContent: op ? formatTime(op.total / op.calls) : "none"}));
    }
    addRatio(line, sums[0].get(name), sums[1].get(name));
    body.append(line);
  }
  get("beside-table").replaceChildren(make("thead", {}, head), body);
}

function drawBeside() {
  const sides = ["left", "right"].map((side) => ({
    side, part: parts[get("beside-" + side).value],
  }));
  for (const each of sides) {
    each.run = findMedianRun(each.part);
  }
  const span = Math.max(...sides.map(({run}) => run.end - run.begin));
  for (const {side, part, run} of sides) {
    get(`beside-${side}-name`).textContent = `${part.name}: ${formatTime(run.end - run.begin)}` +
      (run.count > 0 ? `, the median of ${run.count} run${run.count === 1 ? "" : "s"}` : "");
    new Timeline(get(`beside-${side}-time`), {
      groups: makeGroups(run), begin: run.begin, end: run.begin + span * 1.02,
      origin: run.begin,
      label: `one run of ${part.name}`,
    });
  }
  drawBesideTable(sides[0].part, sides[1].part, get("beside-search").value.trim().toLowerCase());
}

function findPart(name, otherwise) {
  const index = parts.findIndex((part) => part.name === name);
  return index >= 0 ? index : otherwise;
}

function showBeside() {
  get("beside").hidden = parts.length < 2;
  if (parts.length < 2) return;
  fillChoice(get("beside-left"), findPart("eager", 0));
  fillChoice(get("beside-right"), findPart("replay", Math.max(parts.length - 2, 1)));
  for (const id of ["beside-left", "beside-right", "beside-search"]) {
    get(id).addEventListener("input", drawBeside);
  }
  drawBeside();
}

// ---- the timeline of all ----------------------------------------------------------------------

function showLegend() {
  const kinds = new Set(spans.map((s) => s.kind).concat(works.map((w) => w.kind)));
  for (const kind of kinds) {
    const key = make("span", {className: "key"});
    key.style.background = `var(--${colourOf[kind] || "other"})`;
    get("legend").append(make("span", {}, key, kind));
  }
}

function showTimeline() {
  const timeline = new Timeline(get("time-canvas"), {
    groups: makeGroups().concat(makeCounters()), ...whole, label: "timeline of the profile",
  });
  get("time-in").addEventListener("click", () => timeline.zoom(0.5));
  get("time-out").addEventListener("click", () => timeline.zoom(2));
  get("time-all").addEventListener("click", () => timeline.show(0, data.duration));
  get("time-search").addEventListener("input", () => {
    timeline.search = get("time-search").value.trim().toLowerCase();
    timeline.draw();
  });
  for (const part of parts.slice(0, -1)) {  // the last is everything
    const button = make("button", {textContent: part.name});
    button.addEventListener("click", () => timeline.show(part.begin, part.end));
    get("time-parts").append(button);
  }
  showLegend();
  return timeline;
}

function showEvents() {
  const table = new EventTable(get("events-table"), get("events-search"), get("events-note"));
  fillChoice(get("events-part"), findPart("replay", 0));
  get("events-part").addEventListener("input", () => table.show(parts[get("events-part").value]));
  get("events-open").addEventListener("click", () => table.setOpen(true));
  get("events-close").addEventListener("click", () => table.setOpen(false));
  table.show(parts[get("events-part").value]);
  return table;
}

function showMemory() {
  get("memory").hidden = samples.length === 0;
  if (samples.length > 0) {
    new Timeline(get("memory-canvas"), {groups: makeCounters(), ...whole, label: "memory"});
  }
}

function showSections() {
  for (const section of document.querySelectorAll("main section:not([hidden])")) {
    get("sections").append(make("a", {
      href: "#" + section.id, textContent: section.querySelector("h2").textContent,
    }));
  }
}

showHead();
get("cards").append(...parts.map(makeCard));
get("segments").hidden = get("picture").childElementCount === 0;
showBeside();
const timeline = showTimeline();
const eventTable = showEvents();
showMemory();
showSections();
