// Pick a row: the data's table with search, order and pages, or a random row of an output range.
import { newest, random, rows as askRows } from "./api.js";
import { fail, heard } from "./banner.js";
import { announce, debounce, field, fill, h, icon, onWidth, squareButton } from "./dom.js";
import { count, name, num, shown } from "./format.js";
import { on, state, takeRow } from "./state.js";

const PAGE = 10, WIDE = 118;
const OUTPUT = "(output)";

/** Build the table of the data's rows. */
export function rowsPanel() {
  const { site } = state;
  const view = { search: "", sort: "", descending: false, low: "", high: "", offset: 0, first: 0, fit: 6, found: null };
  const ask = newest(askRows);
  const head = h("thead"), body = h("tbody");
  const table = h("table", { class: "rows", "data-test": "row-table" }, h("caption", { class: "hidden" }, "Rows of the data"), head, body);
  const status = h("p", { class: "soft", role: "status" });
  const back = squareButton("Earlier rows", () => turn(-PAGE), "rows-back", "‹"), on_ = squareButton("Further rows", () => turn(PAGE), "rows-on", "›");
  const left = squareButton("Columns to the left", () => slide(-1), "columns-back", "‹");
  const right = squareButton("Columns to the right", () => slide(1), "columns-on", "›");
  const columns = h("p", { class: "soft" });
  const wide = h("div", { class: "wide-table" }, table);

  async function load() {
    const { search, sort, descending, low, high, offset } = view;
    try {
      const found = await ask({ search, sort, descending, low, high, offset, limit: PAGE });
      if (!found) return;
      view.found = found;
      heard();
      draw();
    } catch (error) {
      fail(error, load);
    }
  }

  function turn(by) {
    view.offset = Math.max(0, view.offset + by);
    load();
  }

  function slide(by) {
    view.first = Math.min(Math.max(0, view.first + by * view.fit), Math.max(0, site.features.length - view.fit));
    draw();
  }

  function order(by) {
    view.descending = view.sort === by ? !view.descending : false;
    view.sort = by;
    view.offset = 0;
    load();
  }

  function title(by, text, cls) {
    const sorted = view.sort === by ? (view.descending ? "descending" : "ascending") : null;
    return h("th", { scope: "col", class: cls, "aria-sort": sorted ?? "none" },
      h("button", { class: "sort", "data-test": by === OUTPUT ? "sort-output" : "sort", title: "Sort by this column", onclick: () => order(by) },
        text, h("span", { class: "arrow", "aria-hidden": "true" }, sorted ? (view.descending ? " ↓" : " ↑") : "")));
  }

  function draw() {
    if (!view.found) return;
    const { total, rows } = view.found;
    const visible = site.features.slice(view.first, view.first + view.fit);
    const focus = document.activeElement?.closest?.("table") === table ? document.activeElement.dataset.key : null;
    fill(head, h("tr", null, h("th", { scope: "col" }, site.id === null ? "row" : name(site.id)), title(OUTPUT, name(site.output.name), "right"),
      visible.map((f) => title(f.name, name(f.name), f.levels ? null : "right"))));
    fill(body, rows.map((row) => line(row, visible)));
    if (focus) body.querySelector(`[data-key="${CSS.escape(focus)}"]`)?.focus();
    const end = view.offset + rows.length;
    status.textContent = total ? `${view.offset + 1}–${end} of ${count(total, "row")}` : "No row fits.";
    back.disabled = view.offset === 0;
    on_.disabled = end >= total;
    const last = view.first + visible.length;
    columns.textContent = visible.length < site.features.length ? `features ${view.first + 1}–${last} of ${site.features.length}` : "";
    left.hidden = right.hidden = visible.length === site.features.length;
    left.disabled = view.first === 0;
    right.disabled = last >= site.features.length;
  }

  function line(row, visible) {
    const chosen = state.row.base !== null && String(state.row.base?.label) === String(row.label);
    const pick = () => choose(row);
    return h("tr", { class: chosen ? "chosen" : null, "data-test": "row", "data-label": row.label, onclick: pick },
      h("th", { scope: "row" }, h("button", { class: "pick", "data-key": row.label, "aria-pressed": String(chosen), "aria-label": `Take row ${row.label}` },
        chosen ? icon("check") : null, h("bdi", { class: "cell" }, row.label))),
      h("td", { class: "right strong" }, num(row.output)),
      visible.map((f) => h("td", { class: f.levels ? null : "right" }, shown(row.cells[f.name]))));
  }

  const search = h("input", { type: "search", "data-test": "row-search", placeholder: "any cell", maxlength: 200 });
  search.oninput = debounce(() => {
    view.search = search.value.trim();
    view.offset = 0;
    load();
  }, 250);
  const end = (key, test) => h("input", { type: "number", step: "any", class: "short", "data-test": test, oninput: limit(key) });
  function limit(key) {
    const later = debounce(load, 300);
    return (event) => {
      view[key] = event.target.value;
      view.offset = 0;
      later();
    };
  }

  async function anyRow() {
    try {
      choose(await random(view.low, view.high));
      heard();
    } catch (error) {
      fail(error, error.lost ? anyRow : null);
    }
  }

  on("row", () => draw());
  onWidth(wide, (width) => {
    view.fit = Math.max(2, Math.floor((width - 210) / WIDE));
    slide(0);
  });
  load();
  return h("section", { class: "panel", "aria-labelledby": "rows-title" },
    h("h2", { id: "rows-title" }, "Pick a row"),
    h("div", { class: "row" },
      field("Search the rows", search, { wide: true }),
      field(`${site.output.name} from`, end("low", "range-low")), field("to", end("high", "range-high")),
      h("button", { "data-test": "random-row", onclick: anyRow }, icon("dice"), "Random row")),
    wide, site.shown < site.rows ? h("p", { class: "hint" }, `${site.shown} of ${site.rows} rows of the data are listed here.`) : null,
    h("div", { class: "row spread" }, h("div", { class: "row tight middle" }, back, on_, status), h("div", { class: "row tight middle" }, columns, left, right)));
}

function choose(row) {
  takeRow({ label: row.label, cells: row.cells, output: row.output });
  announce(`Row ${row.label} taken.`);
}
