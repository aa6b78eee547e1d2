// Filter and sort the list of answers. The page is complete without it.
const list = document.querySelector(".list"), body = list.tBodies[0], rows = [...body.rows];
const tools = document.createElement("div"), find = document.createElement("input");
const which = document.createElement("select"), count = document.createElement("span");
tools.className = "tools";
count.className = "note";
count.setAttribute("aria-live", "polite");
find.type = "search";
find.placeholder = "Filter: a name, a feature, a value";
find.setAttribute("aria-label", "Filter");
which.setAttribute("aria-label", "Status");
const states = [...new Set(rows.map((row) => row.dataset.status))];
for (const state of ["", ...states]) which.add(new Option(state || "all", state));
function show() {
  const text = find.value.toLowerCase();
  let n = 0;
  for (const row of rows) {
    row.hidden = !(row.textContent.toLowerCase().includes(text) && (!which.value || row.dataset.status === which.value));
    n += !row.hidden;
  }
  count.textContent = n === rows.length ? "" : `${n} of ${rows.length}`;
}
find.addEventListener("input", show);
which.addEventListener("change", show);
tools.append(find, ...(states.length > 1 ? [which] : []), count);
list.parentElement.before(tools);
[...list.tHead.rows[0].cells].forEach((head, k) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = head.textContent;
  head.replaceChildren(button);
  button.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") !== "ascending";
    for (const other of list.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = (row) => row.cells[k].dataset.key ?? row.cells[k].textContent;
    const order = (a, b) => (isNaN(a) || isNaN(b) ? String(a).localeCompare(b, undefined, { numeric: true }) : a - b);
    rows.sort((a, b) => (up ? 1 : -1) * order(key(a), key(b)));
    body.append(...rows);
  });
});
