// What is drawn: figures, chart and tables, from the answers of the API.
"use strict";

const Draw = (() => {
  // At least 3:1 against the card, light and dark; a line is told by its dashes, too.
  const COLOURS = ["#1f6f8b", "#d1495b", "#6b7c2f", "#6c4f8b", "#b06d10", "#4a5a68"];
  const DARK_COLOURS = ["#6cc3e0", "#ff8a98", "#b9d06b", "#c3a6e6", "#f0b45c", "#a9bccb"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const KNOWN = { pv: "Page views", uv: "Unique visitors" };
  const [usual, small, far] = [{ maximumFractionDigits: 2 }, { maximumSignificantDigits: 3 }, { maximumSignificantDigits: 3, notation: "scientific" }]
    .map((options) => new Intl.NumberFormat("en", options));

  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const colour = (place) => (dark() ? DARK_COLOURS : COLOURS)[place];
  // A name may be one that all objects have, such as "constructor".
  const label = (settings, name) => [settings.labels, KNOWN].find((texts) => Object.hasOwn(texts, name))?.[name] || name;
  const isTime = (type) => type.startsWith("timestamp");
  const sortable = (aggregates) => aggregates.filter((a) => !/binary|list|struct|map/.test(a.type));
  const drawable = (aggregates) => aggregates.filter((a) => /^(u?int|double|float|halffloat|decimal)/.test(a.type));
  // A value that can be drawn, as a plain number: decimals come as text, and whole numbers beyond 2^53 exactly.
  const amount = (found) => (found === null || found === undefined ? null : Number(found));
  let noKeys = false;

  // With two digits behind the point; below 1, and where there are too many before it, three digits that say something.
  function number(n) {
    const size = Math.abs(Number(n));
    if (size === 0) return "0";
    if (size < 1e-6 || size >= 1e21) return far.format(n);
    return (size < 1 ? small : usual).format(n);
  }

  function value(aggregate, found) {
    if (found === null || found === undefined) return "–";
    return text(found, aggregate.type);
  }

  // Of several values all; behind one that was counted, its number: "home (1,200), help (7)".
  function text(found, type) {
    if (found === null) return "–";
    if (Array.isArray(found)) return found.map((each) => text(each, type.replace(/^\w*list<\w+: /, ""))).join(", ") || "–";
    if (typeof found !== "object") {
      if (!["number", "bigint"].includes(typeof found)) return String(found);
      return isTime(type) ? Clock.time(found) : number(found);
    }
    const [first, ...others] = Object.entries(found).map(([name, each]) => text(each, typeOf(name, type)));
    return first + (others.length ? ` (${others.join(", ")})` : "");
  }

  // The type of a struct's field, and what is written behind it: "timestamp[ms, tz=UTC], count: int64>".
  function typeOf(name, type) {
    const at = ["<", " "].map((before) => type.indexOf(`${before}${name}: `)).find((place) => place >= 0);
    return at === undefined ? "" : type.slice(at + name.length + 3);
  }

  // Which of two values comes first. Decimals come as text, and so do durations: "1 day, 2:03:04.5".
  function compare(aggregate, one, other) {
    if (/^duration/.test(aggregate.type)) return seconds(one) - seconds(other);
    if (/^decimal/.test(aggregate.type)) return Number(one) - Number(other);
    return typeof one === "string" ? one.localeCompare(other) : (one > other) - (one < other);
  }

  function seconds(text) {
    const [, days, ...parts] = /(?:(-?\d+) days?,? \+?)?(\d+):(\d+):([\d.]+)/.exec(text);
    return parts.reduce((sum, part) => 60 * sum + Number(part), 24 * Number(days ?? 0));
  }

  // Plotly takes some of HTML in texts; keys are none, whoever has made them.
  const plain = (name) => name.replace(/[&<>]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[sign]);

  // The key as the store writes it, with its escapes undone; "~" alone is null.
  function shown(key) {
    return noKeys ? "all" : key.split(",").map((part) => (part === "~" ? "(none)" : decodeURIComponent(part) || "(empty)")).join(", ");
  }

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // From where to where values go, with 0 among them; and the part of it that lies below a value.
  function scale(values) {
    const low = Math.min(0, ...values), high = Math.max(0, ...values);
    return (v) => (high > low ? (v - low) / (high - low) : 0);
  }

  // A line of values from 0, or the lowest below, to the highest, in a box of its own; with a gap where there is none.
  function sparkline(found) {
    const values = found.map(amount), part = scale(values), last = Math.max(values.length - 1, 1);
    let path = "";
    values.forEach((v, i) => {
      if (v === null || !Number.isFinite(v)) return;
      const begins = i === 0 || values[i - 1] === null;
      path += `${begins ? "M" : "L"}${(100 * i / last).toFixed(1)} ${(23 - 22 * part(v)).toFixed(1)}${begins ? "h0.1" : ""}`;
    });
    const made = document.createElement("template");
    made.innerHTML = '<svg viewBox="0 0 100 24" preserveAspectRatio="none" aria-hidden="true"><path></path></svg>';
    const svg = made.content.firstChild;
    svg.firstChild.setAttribute("d", path);
    return svg;
  }

  // A long text is cut by the page's style; the whole of it comes up under the mouse.
  function written(aggregate, found) {
    const text = value(aggregate, found);
    return text.length > 12 ? element("b", { className: "text", textContent: text, title: text }) : element("b", { textContent: text });
  }

  // places: of each chosen key, its place among the colours. sparks: values by key. measure: what bars and lines are of.
  function figures(list, rows, aggregates, settings, places, sparks, measure, toggle) {
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const part = measure && scale(rows.map((row) => amount(row[measure.name])));
    list.replaceChildren(...rows.map((row) => {
      const place = places.get(row.key);
      const button = element("button", { type: "button" }, element("span", { className: "name", textContent: shown(row.key) }),
        ...aggregates.map((a) => element("span", { className: "figure" }, label(settings, a.name) + " ",
          written(a, row[a.name]))));
      if (measure) {
        const bar = element("span", { className: "bar" }), size = amount(row[measure.name]);
        bar.style.setProperty("--from", part(Math.min(size, 0)));
        bar.style.setProperty("--share", part(Math.max(size, 0)));
        button.append(bar, sparks.has(row.key) ? sparkline(sparks.get(row.key)) : element("span", { className: "no-line" }));
      }
      button.dataset.key = row.key;
      button.setAttribute("aria-pressed", String(place !== undefined));
      if (place !== undefined) button.style.setProperty("--mark", colour(place));
      button.addEventListener("click", () => toggle(row.key));
      return element("li", {}, button);
    }));
    if (focused !== null) list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  // Puts the small lines into figures that are there already, so that nothing moves under a finger.
  function lines(list, sparks) {
    for (const button of list.querySelectorAll("button")) {
      const values = sparks.get(button.dataset.key);
      if (values) button.querySelector("svg, .no-line")?.replaceWith(sparkline(values));
    }
  }

  // times: of the answer, as the axis has them.
  function chart(place, answer, times, aggregates, settings, places) {
    const measures = drawable(aggregates);
    const ink = dark() ? "#e8edf2" : "#1c2733", line = dark() ? "#36424e" : "#dfe4e9";
    const narrow = place.clientWidth < 520;
    const traces = [];
    measures.forEach((measure, m) => answer.series.forEach((series) => traces.push({
      type: "scatter", mode: "lines", x: times, y: series[measure.name].map(amount), name: plain(shown(series.key)), legendgroup: series.key,
      showlegend: m === 0, xaxis: "x", yaxis: m ? `y${m + 1}` : "y",
      line: { color: colour(places.get(series.key)), width: 2, dash: DASHES[places.get(series.key)] },
    })));
    const gap = 0.24 / measures.length, height = (1 - gap * (measures.length - 1)) / measures.length, whole = 190 * measures.length + 90;
    place.style.height = `${whole}px`; // or else the chart is fitted into less when the window changes its size
    const layout = {
      autosize: true, height: whole, margin: { l: narrow ? 44 : 60, r: 12, t: 34, b: 76 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12 }, hovermode: "x unified",
      hoverlabel: { namelength: narrow ? 40 : 120 }, // of a longer name, the value would be beyond the edge
      legend: { orientation: "h", yref: "container", y: 9 / whole, yanchor: "bottom", x: 0 }, dragmode: false,
      xaxis: { type: "date", gridcolor: line, anchor: measures.length > 1 ? `y${measures.length}` : "y",
        nticks: narrow ? 4 : 9, automargin: true },
      annotations: measures.map((measure, m) => ({ text: `<b>${plain(label(settings, measure.name))}</b>`, showarrow: false,
        xref: "paper", yref: "paper", x: 0, xanchor: "left", y: 1 - m * (height + gap), yanchor: "bottom" })),
    };
    measures.forEach((_, m) => {
      const top = 1 - m * (height + gap);
      layout[m ? `yaxis${m + 1}` : "yaxis"] = { domain: [Math.max(0, top - height), top], rangemode: "tozero", gridcolor: line,
        automargin: true, fixedrange: true, nticks: 5 };
    });
    return Plotly.react(place, traces, layout, { displayModeBar: false, responsive: true });
  }

  function clear(place, ...tables) {
    if (place.data) Plotly.purge(place);
    place.style.height = "";
    for (const each of tables) each.replaceChildren();
  }

  // How long a time is ago, in the largest unit of which there are two.
  function ago(ms) {
    const units = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
    const seconds = Math.max(0, Math.round(ms / 1_000));
    const [name, length] = units.find(([, each]) => seconds >= 2 * each) || units.at(-1);
    const count = Math.floor(seconds / length);
    return `${number(count)} ${name}${count === 1 ? "" : "s"}`;
  }

  // heads: texts, or objects with the text and the name that a click sorts by. sorting: the name, and whether down.
  function table(place, caption, heads, rows, sorting, sort) {
    const focused = place.contains(document.activeElement) ? document.activeElement.dataset.name : undefined;
    const cell = (name, text, scope) => {
      const made = element(name, { textContent: text });
      if (scope) made.scope = scope;
      return made;
    };
    const headOf = (head) => {
      if (!head.name) return cell("th", head.text ?? head, "col");
      const made = cell("th", "", "col"), button = element("button", { type: "button", textContent: head.text });
      const by = sorting.name === head.name;
      made.setAttribute("aria-sort", by ? (sorting.down ? "descending" : "ascending") : "none");
      button.dataset.name = head.name;
      button.addEventListener("click", () => sort(head.name));
      made.append(button);
      return made;
    };
    place.replaceChildren(element("caption", { textContent: caption }),
      element("thead", {}, element("tr", {}, ...heads.map(headOf))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text, i) =>
        i ? cell("td", text) : cell("th", text, "row"))))));
    if (focused !== undefined) place.querySelector(`[data-name="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  }

  function nowTable(place, rows, aggregates, settings, caption, sorting, sort) {
    const heads = aggregates.map((a) => ({ text: label(settings, a.name), name: sortable([a]).length ? a.name : "" }));
    table(place, caption, [{ text: "Key", name: "key" }, ...heads],
      rows.map((row) => [shown(row.key), ...aggregates.map((a) => value(a, row[a.name]))]), sorting, sort);
  }

  function seriesTable(place, answer, aggregates, settings, caption) {
    const measures = drawable(aggregates);
    const heads = answer.series.flatMap((series) => measures.map((m) => `${shown(series.key)}: ${label(settings, m.name)}`));
    const rows = answer.times.map((ms, i) => [Clock.time(ms),
      ...answer.series.flatMap((series) => measures.map((m) => value(m, series[m.name][i])))]);
    table(place, caption, [`Window until (${Clock.name()})`, ...heads], rows.reverse());
  }

  // What the texts of keys hang on.
  function prepare(store) {
    noKeys = store.keys.length === 0;
  }

  return { prepare, figures, lines, chart, clear, nowTable, seriesTable, ago, shown, label, sortable, drawable, compare, number, PLACES: COLOURS.length };
})();
