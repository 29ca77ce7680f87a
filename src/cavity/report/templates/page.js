"use strict";

const read = (element) => JSON.parse(element.textContent);

// Charts. Their colours are the page's own variables, so a change of theme needs no redrawing.
// The interpreter (ast) lets Vega work where a page forbids code made from strings.
const numbers = read(document.getElementById("numbers"));
const views = {};
// Rows that are drawn one by one are on the page once, among its numbers.
const rowsOf = (columns) =>
  columns.row.map((_, k) =>
    Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values[k]])),
  );
function chartOf(source) {
  const spec = read(source);
  for (const { data } of spec.layer) if (data.name === "points") data.values = rowsOf(numbers.points);
  return spec;
}
const drawn = [...document.querySelectorAll("script[data-chart]")].map((source) =>
  vegaEmbed(document.getElementById(source.dataset.chart), chartOf(source), {
    renderer: "svg",
    actions: false,
    ast: true,
  }).then((chart) => {
    views[source.dataset.chart] = chart.view;
    // A picture with a text, not a document of many marks: the numbers are in a table.
    const place = document.getElementById(source.dataset.chart);
    place.setAttribute("role", "img");
    place.removeAttribute("aria-roledescription");
  }).catch((problem) => {
    const place = document.getElementById(source.dataset.chart);
    place.textContent = "This chart could not be drawn.";
    console.error(problem);
  }),
);
Promise.all(drawn).then(() => document.documentElement.setAttribute("data-drawn", ""));

// Light and dark.
const theme = document.getElementById("theme");
const system = matchMedia("(prefers-color-scheme: dark)");
const isDark = () =>
  (document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
const nameTheme = () => {
  theme.textContent = isDark() ? "Light" : "Dark";
  theme.setAttribute("aria-pressed", String(isDark()));
};
theme.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  nameTheme();
});
system.addEventListener("change", nameTheme);
nameTheme();

// Tables: a click on a head sorts, a second one turns the order round; blanks stay last.
const valueOf = (row, column) => row.cells[column].dataset.value;
const compare = (p, q) =>
  isNaN(p) || isNaN(q) ? String(p).localeCompare(String(q)) : Number(p) - Number(q);
function sort(head) {
  const column = head.cellIndex;
  const body = head.closest("table").tBodies[0];
  const order = head.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...body.rows].sort((r, s) => {
    const [p, q] = [valueOf(r, column), valueOf(s, column)];
    if (p === "" || q === "") return (p === "") - (q === "");
    return sign * compare(p, q);
  });
  body.append(...rows);
  for (const other of head.parentElement.cells) other.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", order);
}
for (const button of document.querySelectorAll(".sortable th button"))
  button.addEventListener("click", () => sort(button.closest("th")));

// Targets: the first size at which the tabulated curve is at or below the target.
function sizeFor(curve, target) {
  const k = curve.value.findIndex((value) => value <= target);
  if (k <= 0) return k < 0 ? null : curve.size[0];
  const [above, below] = [curve.value[k - 1], curve.value[k]];
  const part = (above - target) / (above - below);
  return Math.exp(Math.log(curve.size[k - 1]) * (1 - part) + Math.log(curve.size[k]) * part);
}
function twoDigits(n) {
  const unit = 10 ** Math.max(Math.floor(Math.log10(n)) - 1, 0);
  return (Math.round(n / unit) * unit).toLocaleString("en");
}
function answer(form) {
  const curve = read(form.querySelector("script"));
  const text = form.querySelector("input").value;
  if (text === "" || isNaN(text)) return "type a number.";
  const size = sizeFor(curve, Number(text) * Number(form.dataset.unit));
  const atHand = Number(form.dataset.rows);
  const most = curve.size.at(-1).toLocaleString("en");
  if (size === null) return `no number of rows up to ${most} is expected to be enough.`;
  form.dataset.size = size;
  if (size <= curve.size[0]) return `${curve.size[0].toLocaleString("en")} rows or fewer are enough.`;
  if (size <= atHand) return `about ${Math.round(size).toLocaleString("en")} rows are enough; you have ${atHand.toLocaleString("en")}.`;
  const more = twoDigits(size - atHand);
  if (size < 1.1 * atHand) return `about ${more} more rows than now are needed.`;
  if (size > 10 * atHand) return `about ${twoDigits(size)} rows are needed.`;
  return `about ${twoDigits(size)} rows are needed, ${more} more than now.`;
}
for (const form of document.querySelectorAll(".goal")) {
  const say = () => {
    delete form.dataset.size;
    form.querySelector("output").textContent = answer(form);
  };
  form.addEventListener("input", say);
  form.addEventListener("submit", (event) => event.preventDefault());
  say();
}

// Thresholds: what each leads to is tabulated, for each class.
const share = (part, whole) => (whole > 0 ? part / whole : NaN);
const inPercent = (x) => (isNaN(x) ? "–" : `${(100 * x).toFixed(1).replace(/\.0$/, "")} %`);
function countsAt(entry, k, rows) {
  const [found, alarms] = [entry.caught[k], entry.alarms[k]];
  return { found, missed: entry.rows - found, alarms, passed: rows - entry.rows - alarms };
}
// The place of the least cost; of several, the one nearest to the place that the costs prescribe.
function cheapest(costs, prescribed) {
  const least = Math.min(...costs);
  const far = costs.map((cost, k) => (cost === least ? Math.abs(k - prescribed) : Infinity));
  return far.indexOf(Math.min(...far));
}
function nearest(steps, value) {
  const off = steps.map((step) => Math.abs(step - value));
  return off.indexOf(Math.min(...off));
}
function mark(chart, data) {
  for (const [name, values] of Object.entries(data)) views[chart]?.data(name, values);
  views[chart]?.runAsync();
}
const pairs = (x, y) => x.map((value, k) => ({ x: value, y: y[k] }));
function drawChoice(entry, now, rows) {
  const others = rows - entry.rows;
  const [recall, precision] = [now.found / entry.rows, share(now.found, now.found + now.alarms)];
  const [{ roc, precision_recall: pr }, base] = [entry, entry.rows / rows];
  mark("chart-roc", { curve: pairs(roc.false, roc.true), here: [{ x: now.alarms / others, y: recall }] });
  mark("chart-precision-recall", {
    curve: pairs(pr.recall, pr.precision),
    guess: pairs([0, 1], [base, base]),
    here: isNaN(precision) ? [] : [{ x: recall, y: precision }],
  });
}
function sayChoice(form, steps, now, costs, places, rows) {
  const per = (k) => `${Number(((100 * costs[k]) / rows).toPrecision(3)).toLocaleString("en")}`;
  const [precision, recall] = [share(now.found, now.found + now.alarms), share(now.found, now.found + now.missed)];
  form.said.textContent =
    `${now.found.toLocaleString("en")} of ${(now.found + now.missed).toLocaleString("en")} found ` +
    `(recall ${inPercent(recall)}), ${now.alarms.toLocaleString("en")} false alarms ` +
    `(precision ${inPercent(precision)}). The expected cost is ${per(places.now)} per 100 rows. ` +
    `The costs prescribe a threshold of ${inPercent(steps[places.prescribed])}, with a cost of ` +
    `${per(places.prescribed)}; the cheapest on these rows is ${inPercent(steps[places.cheapest])}, with ${per(places.cheapest)}.`;
}
function decide(form, { steps, classes }) {
  const entry = classes[Number(form.elements.event?.value ?? 0)];
  const rows = entry.caught[0] + entry.alarms[0];
  const [miss, alarm] = ["miss", "alarm"].map((name) => form.elements[name].valueAsNumber);
  const k = Number(form.threshold.value);
  const now = countsAt(entry, k, rows);
  form.shown.textContent = inPercent(steps[k]);
  form.threshold.setAttribute("aria-valuetext", inPercent(steps[k]));
  for (const cell of form.querySelectorAll("[data-count]"))
    cell.textContent = now[cell.dataset.count].toLocaleString("en");
  drawChoice(entry, now, rows);
  const usable = miss >= 0 && alarm >= 0 && miss + alarm > 0;
  form.prescribed.disabled = form.cheapest.disabled = !usable;
  if (!usable) {
    form.said.textContent = "Type costs of zero or more, of which one is above zero.";
    return null;
  }
  const costs = steps.map((_, i) => {
    const then = countsAt(entry, i, rows);
    return then.missed * miss + then.alarms * alarm;
  });
  const prescribed = nearest(steps, alarm / (miss + alarm));
  const places = { now: k, prescribed, cheapest: cheapest(costs, prescribed) };
  form.dataset.cost = costs[k] / rows;
  sayChoice(form, steps, now, costs, places, rows);
  return places;
}
for (const form of document.querySelectorAll(".decision")) {
  const { thresholds } = numbers;
  form.threshold.max = thresholds.steps.length - 1;
  form.threshold.value = nearest(thresholds.steps, 0.5);
  const say = () => decide(form, thresholds);
  form.addEventListener("input", say);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const name of ["prescribed", "cheapest"])
    form.elements[name].addEventListener("click", () => {
      form.threshold.value = say()[name];
      say();
    });
  say();
  Promise.all(drawn).then(say);
}

// A link to what a check means opens it, and paper shows all of them.
for (const link of document.querySelectorAll(".findings .code"))
  link.addEventListener("click", () => {
    document.getElementById(link.getAttribute("href").slice(1)).open = true;
  });
addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll(".findings details")) details.open = true;
});

// Contents: mark where the reader is.
const links = new Map(
  [...document.querySelectorAll("nav a")].map((link) => [link.getAttribute("href").slice(1), link]),
);
const seen = new IntersectionObserver(
  (entries) => {
    for (const entry of entries.filter((e) => e.isIntersecting)) {
      for (const link of links.values()) link.removeAttribute("aria-current");
      links.get(entry.target.id).setAttribute("aria-current", "true");
    }
  },
  { rootMargin: "-10% 0px -70% 0px" },
);
for (const section of document.querySelectorAll("main section")) seen.observe(section);
