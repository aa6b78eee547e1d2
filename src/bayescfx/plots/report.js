// Filter and sort the list of answers. The page is complete without this script.
const list = document.querySelector(".list");
const body = list.tBodies[0];
const rows = [...body.rows];
const heads = [...list.tHead.rows[0].cells];

const searchInput = document.createElement("input");
searchInput.type = "search";
searchInput.placeholder = "Filter: a name, a feature, a value";
searchInput.setAttribute("aria-label", "Filter");

const statusSelect = document.createElement("select");
statusSelect.setAttribute("aria-label", "Status");
const statuses = [...new Set(rows.map((row) => row.dataset.status))];
for (const name of ["", ...statuses]) {
  statusSelect.add(new Option(name || "all", name));
}

const count = document.createElement("span");
count.className = "note";
count.setAttribute("aria-live", "polite");

const tools = document.createElement("div");
tools.className = "tools";
tools.append(searchInput);
if (statuses.length > 1) {
  tools.append(statusSelect);
}
tools.append(count);
list.parentElement.before(tools);

/** Show the rows that contain the text and have the status. */
function filterRows() {
  const text = searchInput.value.toLowerCase();
  let shown = 0;
  for (const row of rows) {
    const hasText = row.textContent.toLowerCase().includes(text);
    const hasStatus = !statusSelect.value || row.dataset.status === statusSelect.value;
    row.hidden = !(hasText && hasStatus);
    shown += row.hidden ? 0 : 1;
  }
  count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length}`;
}

/** Compare two keys: as numbers if both are, else as text in which numbers count. */
function compare(a, b) {
  if (Number.isNaN(Number(a)) || Number.isNaN(Number(b))) {
    return a.localeCompare(b, undefined, { numeric: true });
  }
  return a - b;
}

/** Sort the rows by column k, in the other direction if they are sorted by it already. */
function sortRows(k) {
  const ascending = heads[k].getAttribute("aria-sort") !== "ascending";
  for (const head of heads) {
    head.removeAttribute("aria-sort");
  }
  heads[k].setAttribute("aria-sort", ascending ? "ascending" : "descending");
  const key = (row) => row.cells[k].dataset.key ?? row.cells[k].textContent;
  rows.sort((a, b) => (ascending ? 1 : -1) * compare(key(a), key(b)));
  body.append(...rows);
}

searchInput.addEventListener("input", filterRows);
statusSelect.addEventListener("change", filterRows);
heads.forEach((head, k) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  button.addEventListener("click", () => sortRows(k));
  head.replaceChildren(button);
});
