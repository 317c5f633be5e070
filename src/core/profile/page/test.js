// What the page says about itself when it is opened with #self-test: the result becomes its title.
// SPDX-License-Identifier: Apache-2.0

const selfTests = {
  "events of a thread lie within those around them": () => spans.every((span) =>
    span.parent === 0 || (span.begin >= spans[span.parent - 1].begin &&
                          span.end <= spans[span.parent - 1].end)),
  "nothing lies over anything else in a row": () => timeline.groups.every((group) =>
    group.counter || group.rows.every((row) => row.every((event, i) =>
      event.end >= event.begin && (i === 0 || event.begin >= row[i - 1].end)))),
  "a part is computation and framework": () => parts.every((part) =>
    part.computation + part.framework === part.total),
  "rows follow each column, both ways": () => [["name", true], ["calls"], ["total"], ["min"],
    ["max"], ["ave"], ["name", false]].every(([key]) => [1, 2].every(() => {
    eventTable.sortBy(key);
    const sign = eventTable.isRising ? 1 : -1;
    return [...eventTable.children.keys()].every((parent) => eventTable.sorted(parent).every(
      (row, i, rows) => i === 0 || sign * (key === "name"
        ? row.name.localeCompare(rows[i - 1].name) : row[key] - rows[i - 1][key]) >= 0));
  })),
  "a search finds a row and those around it, or nothing": () => {
    const deepest = eventTable.part.rows.reduce((a, b) =>
      a === undefined || eventTable.depthOf(b) > eventTable.depthOf(a) ? b : a, undefined);
    if (deepest === undefined) return true;
    const search = get("events-search");
    const type = (value) => {
      search.value = value;
      search.dispatchEvent(new Event("input"));
      return eventTable.list().map(([row]) => row);
    };
    const found = type(deepest.name);
    const isFound = found.includes(deepest) && (deepest.parent < 0 ||
      found.includes(eventTable.part.rows[deepest.parent]));
    const isEmpty = type("\u0000 no such event").length === 0 &&
      get("events-note").textContent === "Nothing matches.";
    type("");
    return isFound && isEmpty;
  },
  "rows open and close": () => {
    eventTable.setOpen(false);
    const few = eventTable.list().length;
    eventTable.setOpen(true);
    return eventTable.list().length === eventTable.part.rows.length &&
      few === eventTable.children.get(-1).length;
  },
  "the timeline zooms, moves and comes back": () => {
    const all = timeline.end - timeline.begin;
    timeline.zoom(0.5);
    const near = timeline.end - timeline.begin;
    const begin = timeline.begin;
    timeline.pan(0.1);
    const isMoved = timeline.begin > begin;
    get("time-all").click();
    return Math.abs(near - all / 2) <= 1 && isMoved && timeline.begin === timeline.first &&
      timeline.end === timeline.last;
  },
  "what is under the pointer is found": () => timeline.groups.every((group) => {
    if (group.counter) return true;
    const event = group.rows[0].reduce((a, b) => b.end - b.begin > a.end - a.begin ? b : a);
    const x = timeline.toX((event.begin + event.end) / 2);
    const found = timeline.find(x, group.y + headHeight + 2);
    return found !== null && describe(found) !== "" && (found === event ||
      event.end - event.begin < 4 * timeline.end / timeline.width);
  }),
  "the tip tells of it, within the window": () => {
    const group = timeline.groups.find((each) => !each.counter);
    if (group === undefined) return true;
    const event = group.rows[0][0];
    const box = timeline.canvas.getBoundingClientRect();
    timeline.canvas.dispatchEvent(new PointerEvent("pointermove", {
      clientX: box.left + timeline.toX((event.begin + event.end) / 2),
      clientY: box.top + group.y + headHeight + 4,
    }));
    const tip = get("tip");
    const place = tip.getBoundingClientRect();
    return !tip.hidden && tip.firstChild.textContent !== "" && place.left >= 0 &&
      place.right <= innerWidth;
  },
  "names are texts": () => document.querySelectorAll(
    "main b, main img, main script, table a, body > svg").length === 0 &&
    document.title !== "hit" && [...document.querySelectorAll("[onload], [onerror]")].length === 0,
  "the page is as wide as the window": () =>
    document.documentElement.scrollWidth <= document.documentElement.clientWidth,
};

function testSelf() {
  const failed = Object.entries(selfTests).filter(([name, test]) => {
    try {
      return !test();
    } catch (error) {
      console.error(name, error);
      return true;
    }
  }).map(([name]) => name);
  document.title = failed.length === 0 ? `self-test: ${Object.keys(selfTests).length} passed`
                                       : "self-test: FAILED: " + failed.join("; ");
}

if (location.hash === "#self-test") {
  testSelf();
}
