// Times as text, in the zone that was chosen.
"use strict";

const Clock = (() => {
  const KEPT = "fastwin-zone", DAY = 86_400_000, FURTHEST = 8.64e15;
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  let zone = "UTC", format = null;

  function choose(name) {
    try {
      const options = { timeZone: name, hourCycle: "h23", year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" };
      format = name === "UTC" ? null : new Intl.DateTimeFormat("en-CA", options);
      zone = name;
    } catch { return; } // a zone that this browser does not know
    try { localStorage.setItem(KEPT, name); } catch { /* it is chosen for now */ }
  }

  // Beyond what a Date can be, 275,760 years from 1970.
  const isBeyond = (ms) => ms > FURTHEST || ms < -FURTHEST;
  // "2024-01-02 06:00:00", or "10000-01-02 06:00:00", which a Date writes as "+010000-01-02T06:00:00.000Z".
  const utc = (ms) => new Date(ms).toISOString().replace(/^\+0?|\.\d+Z$/g, "").replace("T", " ");

  // The date and the time, to the second, on a clock in the zone; the number itself where it is beyond all dates.
  function wall(ms) {
    if (isBeyond(ms)) return String(ms);
    if (!format) return utc(ms);
    const part = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, value]));
    return `${part.year.padStart(4, "0")}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second}`;
  }

  // How far a clock in the zone is ahead of UTC, ms.
  const offset = (ms) => format ? Date.parse(`${wall(ms).replace(" ", "T")}Z`) - Math.floor(ms / 1_000) * 1_000 : 0;

  // Behind a time that clocks in the zone show twice, as when summer time ends, which of the two it is: " +02:00".
  function which(ms) {
    const before = offset(ms - DAY), after = offset(ms + DAY);
    if (!(before > after)) return "";
    const own = offset(ms), other = own === before ? after : before;
    return offset(ms + own - other) === other ? ` ${signed(own)}` : "";
  }

  // An offset, ms, as text: "+02:00".
  function signed(ms) {
    const minutes = Math.floor(Math.abs(ms) / 60_000), two = (n) => String(n).padStart(2, "0");
    return `${ms < 0 ? "-" : "+"}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
  }

  // The times of a chart, in order. Where clocks go back within it, all are at the offset of the last one, "at".
  function axis(all) {
    const walls = all.map((ms) => wall(ms) + fraction(ms));
    if (!walls.some((text, i) => i && text <= walls[i - 1] && offset(all[i]) < offset(all[i - 1]))) return { times: walls, at: "" };
    const ahead = offset(all.at(-1));
    return { times: all.map((ms) => utc(ms + ahead) + fraction(ms)), at: signed(ahead) };
  }

  // What a time has below the second: ".250".
  const fraction = (ms) => (isBeyond(ms) || ms % 1_000 === 0 ? "" : new Date(ms).toISOString().slice(-5, -1));
  // To the minute, or as finely as the time is.
  const time = (ms) => (isBeyond(ms) ? String(ms) : (wall(ms) + fraction(ms)).replace(/:00$/, "") + which(ms));
  const second = (ms) => wall(ms).slice(11);

  // UTC first, then the browser's own zone, then all.
  function fill(select) {
    const all = Intl.supportedValuesOf ? Intl.supportedValuesOf("timeZone") : [];
    const first = [...new Set(["UTC", own])];
    const option = (name) => new Option(name.replaceAll("_", " "), name, name === zone, name === zone);
    const others = Object.assign(document.createElement("optgroup"), { label: "All" });
    others.append(...all.filter((name) => !first.includes(name)).map(option));
    select.replaceChildren(...first.map(option), others);
  }

  let kept = null;
  try { kept = localStorage.getItem(KEPT); } catch { /* UTC, then */ }
  if (kept) choose(kept);
  return { axis, choose, fill, time, second, name: () => zone.replaceAll("_", " ") };
})();
