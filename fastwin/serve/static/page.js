// Asks the API, keeps what is chosen, and looks for news every few seconds.
"use strict";

(() => {
  const MAX_CARDS = 60, MAX_ASKED = 50, MAX_BYTES = 55_000, PATIENCE = 20_000;
  const MINUTE = 60_000, HOUR = 60 * MINUTE, OLD_AFTER = 900_000, OLD_PANES = 10;
  // Of windows and ranges to choose from, and of steps of the small lines, where panes divide them.
  const LENGTHS = [5_000, 15_000, MINUTE, 5 * MINUTE, 15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, 24 * HOUR];
  const byId = (id) => document.getElementById(id);
  const state = { settings: null, store: null, current: null, series: null,
    picked: null, stamp: null, busy: false, asked: null, sorting: { name: "", down: true } };
  // The small lines: of which question they are, and the values of each key.
  const sparks = { question: "", values: new Map() };
  // Of the keys that somebody has picked (null: nobody has), those that are there are drawn. Each of them has a place,
  // which is its colour for as long as it is drawn, and again when it is drawn again.
  const places = new Map(), formerPlaces = new Map();

  // The token stands behind the # of the address, which browsers send nowhere.
  const TOKEN = "fastwin-token";
  let token = null;
  try { token = sessionStorage.getItem(TOKEN); } catch { /* a browser that keeps nothing asks again */ }
  takeToken();

  // Whether there was one.
  function takeToken() {
    const given = new URLSearchParams(location.hash.slice(1)).get("token");
    if (!given) return false;
    token = given;
    keepToken();
    history.replaceState(null, "", location.pathname + location.search);
    return true;
  }

  function keepToken() {
    try { sessionStorage.setItem(TOKEN, token); } catch { /* it is known for now */ }
  }

  // Whole numbers beyond 2^53 as they are, in a browser that says how they were written.
  const exactly = (_, value, context) =>
    (Number.isInteger(value) && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source) ? BigInt(context.source) : value);

  const failure = (status, text, reason) => Object.assign(new Error(text), { status, reason });

  async function ask(name, parameters = []) {
    if (/[^\x20-\x7e]/.test(token ?? "")) throw failure(401, "The token is wrong"); // browsers send no such header
    const query = new URLSearchParams(parameters).toString();
    let answer, body;
    try {
      answer = await fetch(`/api/${name}${query ? "?" + query : ""}`, {
        headers: token ? { Authorization: `Bearer ${token}` } : {}, cache: "no-store",
        signal: AbortSignal.timeout(PATIENCE),
      });
      body = JSON.parse(await answer.text(), exactly);
    } catch {
      // Not there, not there in time, or cut off.
      if (!answer || answer.ok) throw failure(0, "The service does not answer; trying again.");
      body = { error: `The service answered ${answer.status}.` };
    }
    if (!answer.ok) throw failure(answer.status, body.error, body.reason);
    return body;
  }

  // What the page is in: "fine", "stale", "broken" (the figures shown are old), or nothing to show yet: "loading",
  // "empty", "token", "down".
  function enter(name, title = "", text = "") {
    document.body.dataset.state = name;
    byId("state-title").textContent = title;
    byId("state-text").textContent = text;
    byId("token-form").hidden = name !== "token";
    byId("problem").hidden = name !== "broken";
    const alarm = name === "broken" ? text : "";
    if (byId("problem").textContent !== alarm) byId("problem").textContent = alarm; // it is read out each time
  }

  function fail(problem) {
    const asked = problem.status !== undefined; // or else it is the page that failed
    const told = asked ? problem.message : `The page cannot show this: ${problem.message}.`;
    if (!asked) console.error(problem);
    if (problem.status === 401) enter("token", "This page needs a token", `${told.split(":")[0]}.`);
    else if (problem.reason === "empty") enter("empty", "No data yet", "The store is empty. Figures come by themselves when the stream has closed its first pane.");
    else if (state.current) {
      enter("broken", "", `${told} The figures below are old.`);
      showAge();
    }
    else enter("down", asked ? "The store does not answer" : "Something is wrong with this page", told);
  }

  function showAge() {
    if (!state.store || !state.current) return;
    const age = Date.now() - state.store.watermark;
    byId("age").textContent = age < 0 ? "The data ends in the future." : `The data ends ${Draw.ago(age)} ago. Looked ${Draw.ago(Date.now() - state.asked)} ago.`;
    const old = age > Math.max(OLD_AFTER, OLD_PANES * state.store.pane_ms);
    if (["fine", "stale"].includes(document.body.dataset.state)) document.body.dataset.state = old ? "stale" : "fine";
  }

  function choose(keys) {
    for (const key of [...places.keys()]) if (!keys.includes(key)) places.delete(key);
    for (const key of keys) {
      if (places.has(key)) continue;
      const taken = new Set(places.values());
      const free = Array.from({ length: Draw.PLACES }, (_, place) => place).filter((place) => !taken.has(place));
      const before = formerPlaces.get(key);
      places.set(key, free.includes(before) ? before : free[0]);
      formerPlaces.set(key, places.get(key));
    }
  }

  function duration(ms) {
    const units = [["day", 24 * HOUR], ["hour", HOUR], ["minute", MINUTE], ["second", 1_000]];
    const [unit, length] = units.find(([name, each]) => ms % each === 0 && (name !== "day" || ms > each)) || units.at(-1);
    return `${ms / length} ${unit}${ms === length ? "" : "s"}`;
  }

  function fill(select, lengths, preferred) {
    select.replaceChildren(...lengths.map((ms) => new Option(duration(ms), ms, ms === preferred, ms === preferred)));
  }

  function setUp() {
    Draw.prepare(state.store);
    const { pane_ms: pane, coarse_ms: coarse, window_ms: whole, retention_ms: kept } = state.store;
    const nice = [pane, ...LENGTHS, 72 * HOUR, 168 * HOUR, whole];
    const fits = [...new Set(nice)].filter((ms) => ms % pane === 0 && ms <= kept).sort((a, b) => a - b);
    fill(byId("window"), fits, whole);
    const long = fits.filter((ms) => ms >= 4 * pane && ms >= (coarse || 0)), longest = kept - kept % pane;
    const ranges = long.length ? long : [...new Set([4 * pane, longest])].filter((ms) => ms <= longest);
    fill(byId("range"), ranges, ranges.includes(whole) ? whole : ranges.at(-1));
    const { aggregates } = state.store;
    state.sorting.name = Draw.sortable(aggregates)[0]?.name ?? "key";
    byId("sort").replaceChildren(...Draw.sortable(aggregates).map((a) => new Option(Draw.label(state.settings, a.name), a.name)), new Option("Name", "key"));
    byId("sort").addEventListener("change", () => sortBy(byId("sort").value, byId("sort").value !== "key"));
    Clock.fill(byId("zone"));
    byId("zone").addEventListener("change", () => { Clock.choose(byId("zone").value); showCurrent(); showSeries(); });
    for (const id of ["window", "range"]) byId(id).addEventListener("change", () => refresh(true));
    byId("find").addEventListener("input", () => {
      if (!state.current) return;
      showFigures();
      refreshSparks(turn).catch(() => {});
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showFigures(); showSeries(); });
  }

  // Down, unless it is down already.
  function sortBy(name, down = name === state.sorting.name ? !state.sorting.down : name !== "key") {
    state.sorting = { name, down };
    byId("sort").value = name;
    showCurrent();
    refresh(true); // the store may have more than are here, and those that belong here are others now
  }

  function sorted(rows, { name, down } = state.sorting) {
    const turn = down ? -1 : 1;
    const byKey = (a, b) => Draw.shown(a.key).localeCompare(Draw.shown(b.key));
    const compare = name === "key" ? byKey
      : (a, b) => Draw.compare(state.store.aggregates.find((each) => each.name === name), a[name], b[name]);
    const missing = (row) => row[name] === null;
    // Equal ones by their keys, in whatever order the store gave them.
    return [...rows].sort((a, b) => (missing(a) || missing(b) ? missing(a) - missing(b) : turn * compare(a, b)) || byKey(a, b));
  }

  function toggle(key) {
    const picked = state.picked ?? [...places.keys()];
    const pushed = !places.has(key) && places.size === Draw.PLACES ? picked.find((other) => places.has(other)) : null;
    state.picked = [...picked.filter((other) => other !== key && other !== pushed), ...(places.has(key) ? [] : [key])];
    choose(pickedHere());
    showFigures();
    refresh(true);
  }

  function pickedHere() {
    const here = new Set(state.current.rows.map((row) => row.key));
    return state.picked.filter((key) => here.has(key)).slice(-Draw.PLACES);
  }

  function shownRows() {
    const part = byId("find").value.trim().toLowerCase();
    return sorted(state.current.rows).filter((row) => Draw.shown(row.key).toLowerCase().includes(part));
  }

  function showFigures() {
    const { store, settings, current } = state;
    const found = shownRows(), measure = Draw.drawable(store.aggregates)[0];
    Draw.figures(byId("figures"), found.slice(0, MAX_CARDS), store.aggregates, settings, places, sparks.values, measure, toggle);
    const missing = current.total - current.rows.length, hidden = Math.max(found.length - MAX_CARDS, 0) + missing;
    byId("figures-more").hidden = hidden === 0 && found.length > 0;
    byId("figures-more").textContent = found.length ? `${Draw.number(hidden)} more are in the store.`
      : current.total === 0 ? "No key has anything in this window."
        : missing ? `None of the ${Draw.number(current.rows.length)} in the table has that name; ${Draw.number(missing)} more are in the store.`
          : "Nothing has that name.";
    const question = sparkQuestion(), what = measure && Draw.label(settings, measure.name);
    byId("figures-hint").textContent = (measure ? `Choose up to six for the chart. Bars compare ${what}.` : "")
      + (question ? ` Lines: ${what} per ${duration(question.step).replace(/^1 /, "")} over ${duration(question.range)}, each on its own scale.` : "");
  }

  // Of the chart's range, in steps of which there are at least 8 and at most 48; null if there are no such steps.
  function sparkQuestion() {
    const { pane_ms: pane, coarse_ms: coarse, watermark } = state.store, range = Number(byId("range").value);
    if (!Draw.drawable(state.store.aggregates).length) return null;
    const steps = [pane, ...LENGTHS].filter((step) => step % pane === 0 && range % step === 0 && range / step >= 8 && range / step <= 48);
    if (!steps.length) return null;
    const step = steps.find((each) => coarse && each % coarse === 0) ?? steps[0];
    // The same question for as long as a step lasts.
    return { step, range, end: watermark % pane ? watermark : watermark - watermark % step };
  }

  // As many keys at a time as one question may name, and as have room in its address.
  function portions(keys) {
    const found = [];
    let bytes = 0;
    for (const key of keys) {
      const more = new URLSearchParams([["key", key]]).toString().length + 1;
      if (!found.length || found.at(-1).length === MAX_ASKED || bytes + more > MAX_BYTES) {
        found.push([]);
        bytes = 0;
      }
      found.at(-1).push(key);
      bytes += more;
    }
    return found;
  }

  async function refreshSparks(mine) {
    const question = sparkQuestion();
    if (!question) return;
    const name = JSON.stringify([question, state.store.identity]);
    if (name !== sparks.question) Object.assign(sparks, { question: name, values: new Map() });
    const keys = shownRows().slice(0, MAX_CARDS).map((row) => row.key).filter((key) => !sparks.values.has(key));
    if (!keys.length) return;
    const measure = Draw.drawable(state.store.aggregates)[0].name, { step, range, end } = question;
    const common = [["window", step + "ms"], ["step", step + "ms"], ["range", range + "ms"], ["end", end]];
    for (const some of portions(keys)) {
      const found = await ask("series", [...common, ...some.map((key) => ["key", key])]);
      if (mine !== turn) return;
      for (const series of found.series) sparks.values.set(series.key, series[measure]);
    }
    Draw.lines(byId("figures"), sparks.values);
  }

  function showSeries() {
    const drawable = Draw.drawable(state.store.aggregates).length > 0;
    byId("chart").hidden = !drawable;
    if (!state.series) {
      byId("chart-hint").textContent = drawable ? "Nothing is chosen. Choose up to six above."
        : "None of the figures is a number that can be drawn.";
      Draw.clear(byId("chart"), byId("series-table"));
      return;
    }
    const { series, store, settings } = state;
    const names = series.series.map((one) => Draw.shown(one.key)).join(", ");
    const short = series.since > series.times[0] - series.window_ms;
    const text = `Windows of ${duration(series.window_ms)}, one every ${duration(series.step_ms)}, until ${Clock.time(series.end)} ${Clock.name()}: ${names}.`
      + (short ? ` Those that begin before ${Clock.time(series.since)} are not complete: there is no data from before.` : "");
    const { times, at } = Clock.axis(series.times);
    byId("chart-hint").textContent = text + (at ? ` Clocks go back within it; the chart has all times at ${at}.` : "");
    Draw.chart(byId("chart"), series, times, store.aggregates, settings, places);
    Draw.seriesTable(byId("series-table"), series, store.aggregates, settings, text);
  }

  function showCurrent() {
    const { current, store, settings } = state;
    const text = `${duration(current.window_ms)} until ${Clock.time(current.end)} ${Clock.name()}`;
    byId("until").textContent = text;
    const short = current.since !== null && current.since > current.start;
    byId("since").hidden = !short;
    byId("since").textContent = short ? `The store has data since ${Clock.time(current.since)} ${Clock.name()} only; windows that begin earlier are not complete.` : "";
    const highest = sorted(current.rows, { name: Draw.sortable(store.aggregates)[0]?.name ?? "key", down: true });
    choose(state.picked ? pickedHere() : highest.slice(0, 3).map((row) => row.key));
    showFigures();
    const { total, rows: { length }, by } = current;
    const part = `. ${Draw.number(length)} of ${Draw.number(total)} keys` + (by ? `, those with the highest ${Draw.label(settings, by)}` : "");
    Draw.nowTable(byId("now-table"), sorted(current.rows), store.aggregates, settings, text + (total > length ? part : ""), state.sorting, sortBy);
  }

  // Two answers that cross are told apart by their turn: the last question wins.
  let turn = 0;
  async function refresh(force) {
    if (state.busy && !force) return;
    const mine = ++turn;
    state.busy = true;
    if (force) state.stamp = null; // what is chosen is asked again until there is an answer
    try {
      state.settings ??= await ask("settings");
      document.title = byId("title").textContent = state.settings.title;
      const store = await ask("store");
      if (state.store && state.store.identity !== store.identity) return location.reload();
      const first = state.store === null;
      state.store = store;
      if (first) setUp();
      if (force || store.stamp !== state.stamp) {
        const window = ["window", byId("window").value + "ms"];
        const by = state.sorting.name === "key" ? Draw.sortable(store.aggregates)[0]?.name : state.sorting.name;
        const current = await ask("current", [window, ["limit", 1000], ...(by ? [["sort", by]] : [])]);
        if (mine !== turn) return;
        state.current = { ...current, by };
        state.asked = Date.now();
        showCurrent();
        const chosen = [...places.keys()];
        const series = chosen.length === 0 || !Draw.drawable(store.aggregates).length ? null
          : await ask("series", [window, ["range", byId("range").value + "ms"], ...chosen.map((key) => ["key", key])]);
        if (mine !== turn) return;
        state.series = series;
        if (document.body.dataset.state !== "broken") enter("fine"); // where it is seen, the chart knows how wide it is
        showSeries();
        // Another process of the service may have answered, which knows an older version.
        state.stamp = series === null || series.stamp === current.stamp ? current.stamp : null;
        byId("status").textContent = `Updated at ${Clock.second(Date.now())} ${Clock.name()}.`;
        refreshSparks(mine).catch(() => {}); // the figures are there without them
      }
      state.asked = Date.now();
      enter("fine");
      showAge();
    } catch (problem) {
      if (mine === turn) fail(problem);
    } finally {
      if (mine === turn) state.busy = false;
    }
  }

  async function follow() {
    if (!document.hidden && document.body.dataset.state !== "token") await refresh(false);
    setTimeout(follow, state.settings ? state.settings.refresh_ms : 1_000);
  }
  byId("token-form").addEventListener("submit", (event) => {
    event.preventDefault();
    token = byId("token").value;
    keepToken();
    byId("token").value = "";
    refresh(true);
  });
  addEventListener("hashchange", () => { if (takeToken()) refresh(true); });
  setInterval(showAge, 1_000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(false); });
  follow();
})();
