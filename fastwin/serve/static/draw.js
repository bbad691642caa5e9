// What is drawn: figures, chart and tables, from the answers of the API.
"use strict";

const Draw = (() => {
  // At least 3:1 against the card, light and dark; a line is told by its dashes, too.
  const COLOURS = ["#1f6f8b", "#d1495b", "#6b7c2f", "#6c4f8b", "#b06d10", "#4a5a68"];
  const DARK_COLOURS = ["#6cc3e0", "#ff8a98", "#b9d06b", "#c3a6e6", "#f0b45c", "#a9bccb"];
  const DASHES = ["solid", "dash", "dot", "dashdot", "longdash", "longdashdot"];
  const KNOWN = { pv: "Page views", uv: "Unique visitors" };
  const number = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

  const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
  const colour = (place) => (dark() ? DARK_COLOURS : COLOURS)[place];
  const label = (settings, name) => settings.labels[name] || KNOWN[name] || name;
  const isTime = (aggregate) => aggregate.type.startsWith("timestamp");
  const drawable = (aggregates) => aggregates.filter((a) => /^(u?int|double|float)/.test(a.type));

  function time(ms, withDate = true) {
    const text = new Date(ms).toISOString();
    return (withDate ? text.slice(0, 10) + " " : "") + text.slice(11, 16);
  }

  function value(aggregate, found) {
    if (found === null || found === undefined) return "–";
    if (isTime(aggregate)) return time(found);
    return typeof found === "number" ? number.format(found) : String(found);
  }

  // The key as the store writes it, with its escapes undone; "~" alone is null.
  function shown(key) {
    return key.split(",").map((part) => (part === "~" ? "(none)" : decodeURIComponent(part) || "(empty)")).join(", ");
  }

  function element(name, properties = {}, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // places: of each chosen key, its place among the colours.
  function figures(list, rows, aggregates, settings, places, toggle) {
    const focused = list.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    list.replaceChildren(...rows.map((row) => {
      const place = places.get(row.key);
      const button = element("button", { type: "button" }, element("span", { className: "name", textContent: shown(row.key) }),
        ...aggregates.map((a) => element("span", { className: "figure" }, label(settings, a.name) + " ",
          element("b", { textContent: value(a, row[a.name]) }))));
      button.dataset.key = row.key;
      button.setAttribute("aria-pressed", String(place !== undefined));
      if (place !== undefined) button.style.setProperty("--mark", colour(place));
      button.addEventListener("click", () => toggle(row.key));
      return element("li", {}, button);
    }));
    if (focused !== null) list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  function chart(place, answer, aggregates, settings, places) {
    const measures = drawable(aggregates);
    const ink = dark() ? "#e8edf2" : "#1c2733", line = dark() ? "#36424e" : "#dfe4e9";
    const narrow = place.clientWidth < 520;
    const times = answer.times.map((ms) => new Date(ms).toISOString());
    const traces = [];
    measures.forEach((measure, m) => answer.series.forEach((series) => traces.push({
      type: "scatter", mode: "lines", x: times, y: series[measure.name], name: shown(series.key), legendgroup: series.key,
      showlegend: m === 0, xaxis: "x", yaxis: m ? `y${m + 1}` : "y",
      line: { color: colour(places.get(series.key)), width: 2, dash: DASHES[places.get(series.key)] },
    })));
    const gap = 0.12, height = (1 - gap * (measures.length - 1)) / measures.length;
    const layout = {
      autosize: true, height: 190 * measures.length + 90, margin: { l: narrow ? 44 : 60, r: 12, t: 34, b: 36 },
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { color: ink, size: 12 }, hovermode: "x unified",
      legend: { orientation: "h", y: -0.12, x: 0 }, dragmode: false,
      xaxis: { type: "date", gridcolor: line, anchor: measures.length > 1 ? `y${measures.length}` : "y",
        nticks: narrow ? 4 : 9, automargin: true },
      annotations: measures.map((measure, m) => ({ text: `<b>${label(settings, measure.name)}</b>`, showarrow: false,
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
    for (const each of tables) each.replaceChildren();
  }

  // How long a time is ago, in the largest unit of which there are two.
  function ago(ms) {
    const units = [["year", 31_557_600], ["month", 2_629_800], ["day", 86_400], ["hour", 3_600], ["minute", 60], ["second", 1]];
    const seconds = Math.max(0, Math.round(ms / 1_000));
    const [name, length] = units.find(([, each]) => seconds >= 2 * each) || units.at(-1);
    const count = Math.floor(seconds / length);
    return `${number.format(count)} ${name}${count === 1 ? "" : "s"}`;
  }

  function table(place, caption, heads, rows) {
    const cell = (name, text, scope) => {
      const made = element(name, { textContent: text });
      if (scope) made.scope = scope;
      return made;
    };
    place.replaceChildren(element("caption", { textContent: caption }),
      element("thead", {}, element("tr", {}, ...heads.map((head) => cell("th", head, "col")))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text, i) =>
        i ? cell("td", text) : cell("th", text, "row"))))));
  }

  function nowTable(place, answer, aggregates, settings, caption) {
    table(place, caption, ["Key", ...aggregates.map((a) => label(settings, a.name))],
      answer.rows.map((row) => [shown(row.key), ...aggregates.map((a) => value(a, row[a.name]))]));
  }

  function seriesTable(place, answer, aggregates, settings, caption) {
    const measures = drawable(aggregates);
    const heads = answer.series.flatMap((series) => measures.map((m) => `${shown(series.key)}: ${label(settings, m.name)}`));
    const rows = answer.times.map((ms, i) => [time(ms),
      ...answer.series.flatMap((series) => measures.map((m) => value(m, series[m.name][i])))]);
    table(place, caption, ["Window until (UTC)", ...heads], rows.reverse());
  }

  return { figures, chart, clear, nowTable, seriesTable, time, ago, shown, number, PLACES: COLOURS.length };
})();
