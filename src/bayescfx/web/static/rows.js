// @ts-check
// Pick a row: the data's table with search, order and pages, or a random row of an output range.
import { asApiError, getRandomRow, getRows, latest } from "./api.js";
import { clearLost, fail } from "./banner.js";
import { announce, debounce, field, fill, h, icon, onWidth, squareButton } from "./dom.js";
import { count, name, num, shown } from "./format.js";
import { on, setRow, state } from "./state.js";

/** @import { Child, DataPage, DataRow, Feature } from "./types.js" */

const PAGE_ROWS = 10;
const COLUMN_WIDTH = 118; // pixels of a column; those that do not fit are reached by buttons
const FIRST_COLUMNS = 210; // pixels of the label and the output
const OUTPUT = "(output)"; // the server's name of the output column

/** The table of the data's rows, with its query. */
class RowTable {
  constructor() {
    this.query = { search: "", sort: "", descending: false, low: "", high: "", offset: 0 };
    this.firstColumn = 0;
    this.nColumns = 6;
    /** @type {DataPage | null} */
    this.page = null;
    this.request = latest(getRows);
    this.head = h("thead");
    this.body = h("tbody");
    this.table = h(
      "table",
      { class: "rows", "data-test": "row-table" },
      h("caption", { class: "hidden" }, "Rows of the data"),
      this.head,
      this.body,
    );
    this.frame = h("div", { class: "wide-table" }, this.table);
    this.status = h("p", { class: "soft", role: "status" });
    this.columns = h("p", { class: "soft" });
    this.back = squareButton("Earlier rows", () => this.turn(-PAGE_ROWS), "rows-back", "‹");
    this.next = squareButton("Further rows", () => this.turn(PAGE_ROWS), "rows-on", "›");
    this.left = squareButton("Columns to the left", () => this.slide(-1), "columns-back", "‹");
    this.right = squareButton("Columns to the right", () => this.slide(1), "columns-on", "›");
    onWidth(this.frame, (width) => {
      this.nColumns = Math.max(2, Math.floor((width - FIRST_COLUMNS) / COLUMN_WIDTH));
      this.slide(0);
    });
  }

  get features() {
    return state.site.features;
  }

  async load() {
    try {
      const page = await this.request({ ...this.query, limit: PAGE_ROWS });
      if (!page) return;
      this.page = page;
      clearLost();
      this.draw();
    } catch (error) {
      fail(asApiError(error), () => this.load());
    }
  }

  /**
   * Change the query and show the first page.
   * @param {object} change
   */
  search(change) {
    Object.assign(this.query, change, { offset: 0 });
    this.load();
  }

  /** @param {number} by */
  turn(by) {
    this.query.offset = Math.max(0, this.query.offset + by);
    this.load();
  }

  /** @param {number} by */
  slide(by) {
    const last = Math.max(0, this.features.length - this.nColumns);
    this.firstColumn = Math.min(Math.max(0, this.firstColumn + by * this.nColumns), last);
    this.draw();
  }

  /** @param {string} column */
  sortBy(column) {
    const isSame = this.query.sort === column;
    this.search({ sort: column, descending: isSame && !this.query.descending });
  }

  /**
   * @param {string} column
   * @param {Child} text
   * @param {string | null} cls
   */
  title(column, text, cls) {
    const isSorted = this.query.sort === column;
    const { descending } = this.query;
    const order = descending ? "descending" : "ascending";
    const arrow = descending ? " ↓" : " ↑";
    return h(
      "th",
      { scope: "col", class: cls, "aria-sort": isSorted ? order : "none" },
      h(
        "button",
        {
          class: "sort",
          "data-test": column === OUTPUT ? "sort-output" : "sort",
          title: "Sort by this column",
          onclick: () => this.sortBy(column),
        },
        text,
        h("span", { class: "arrow", "aria-hidden": "true" }, isSorted ? arrow : ""),
      ),
    );
  }

  draw() {
    if (!this.page) return;
    const { rows } = this.page;
    const { site } = state;
    const visible = this.features.slice(this.firstColumn, this.firstColumn + this.nColumns);
    const focused = this.focusedLabel();
    fill(
      this.head,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, site.id === null ? "row" : name(site.id)),
        this.title(OUTPUT, name(site.output.name), "right"),
        visible.map((f) => this.title(f.name, name(f.name), f.levels ? null : "right")),
      ),
    );
    fill(
      this.body,
      rows.map((row) => rowLine(row, visible)),
    );
    this.focus(focused);
    this.drawPages(this.page);
    this.drawColumns(visible.length);
  }

  /** Return the label of the row whose button has the focus. */
  focusedLabel() {
    const active = document.activeElement;
    if (!(active instanceof HTMLElement) || !this.table.contains(active)) return null;
    return active.dataset.key ?? null;
  }

  /** @param {string | null} label */
  focus(label) {
    if (label === null) return;
    const button = this.body.querySelector(`[data-key="${CSS.escape(label)}"]`);
    if (button instanceof HTMLElement) button.focus();
  }

  /** @param {DataPage} page */
  drawPages({ total, rows }) {
    const { offset } = this.query;
    const end = offset + rows.length;
    this.status.textContent = total
      ? `${offset + 1}–${end} of ${count(total, "row")}`
      : "No row matches.";
    this.back.disabled = offset === 0;
    this.next.disabled = end >= total;
  }

  /** @param {number} nVisible */
  drawColumns(nVisible) {
    const nAll = this.features.length;
    const last = this.firstColumn + nVisible;
    const isWhole = nVisible === nAll;
    this.columns.textContent = isWhole ? "" : `features ${this.firstColumn + 1}–${last} of ${nAll}`;
    this.left.hidden = isWhole;
    this.right.hidden = isWhole;
    this.left.disabled = this.firstColumn === 0;
    this.right.disabled = last >= nAll;
  }
}

/**
 * Return a line of the table.
 * @param {DataRow} row
 * @param {Feature[]} visible
 */
function rowLine(row, visible) {
  const { base } = state.row;
  const isChosen = base !== null && String(base.label) === String(row.label);
  const button = h(
    "button",
    {
      class: "pick",
      "data-key": row.label,
      "aria-pressed": String(isChosen),
      "aria-label": `Pick row ${row.label}`,
    },
    isChosen ? icon("check") : null,
    h("bdi", { class: "cell" }, row.label),
  );
  return h(
    "tr",
    {
      class: isChosen ? "chosen" : null,
      "data-test": "row",
      "data-label": row.label,
      onclick: () => choose(row),
    },
    h("th", { scope: "row" }, button),
    h("td", { class: "right strong" }, num(row.output)),
    visible.map((f) =>
      h("td", { class: f.levels ? null : "right" }, shown(row.cells[f.name], "bdi", 6)),
    ),
  );
}

/** @param {DataRow} row */
function choose({ label, cells, output }) {
  setRow({ label, cells, output });
  announce(`Row ${label} picked.`);
}

/** Build the table of the data's rows. */
export function rowsPanel() {
  const { site } = state;
  const table = new RowTable();
  const search = h("input", {
    type: "search",
    "data-test": "row-search",
    placeholder: "any cell",
    maxlength: 200,
  });
  search.oninput = debounce(() => table.search({ search: search.value.trim() }), 250);

  /**
   * @param {"low" | "high"} key
   * @param {string} label
   */
  function outputLimit(key, label) {
    const props = { type: "number", step: "any", class: "short", "data-test": `range-${key}` };
    const input = h("input", props);
    const later = debounce(() => table.search({}), 300);
    input.oninput = () => {
      table.query[key] = input.value;
      later();
    };
    return field(label, input);
  }

  async function pickRandom() {
    try {
      choose(await getRandomRow(table.query.low, table.query.high));
      clearLost();
    } catch (thrown) {
      const error = asApiError(thrown);
      fail(error, error.lost ? pickRandom : null);
    }
  }

  on("row", () => table.draw());
  table.load();
  const listed = `${site.n_listed} of ${site.n_rows} rows of the data are listed here.`;
  return h(
    "section",
    { class: "panel", "aria-labelledby": "rows-title" },
    h("h2", { id: "rows-title" }, "Pick a row"),
    h(
      "div",
      { class: "row" },
      field("Search the rows", search, { wide: true }),
      outputLimit("low", `${site.output.name} from`),
      outputLimit("high", "to"),
      h("button", { "data-test": "random-row", onclick: pickRandom }, icon("dice"), "Random row"),
    ),
    table.frame,
    site.n_listed < site.n_rows ? h("p", { class: "hint" }, listed) : null,
    h(
      "div",
      { class: "row spread" },
      h("div", { class: "row tight middle" }, table.back, table.next, table.status),
      h("div", { class: "row tight middle" }, table.columns, table.left, table.right),
    ),
  );
}
