// Sort tables by their headers, and make boxes focusable only if they scroll.
"use strict";
const missing = new Set(["", "–"]);

/** Return the number that a cell begins with, or NaN. */
function leading(text) {
  const plain = text.replace(/[−]/g, "-").replace(/(\d),(?=\d{3})/g, "$1").replace(/^-∞/, "-Infinity");
  return /^[-+]?(\d|\.\d|Infinity)/.test(plain) ? parseFloat(plain) : NaN;
}

function sort(table, column, ascending) {
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => [row, row.cells[column].textContent.trim()]);
  const known = rows.filter(([, text]) => !missing.has(text));
  const numeric = known.every(([, text]) => !Number.isNaN(leading(text)));
  const compare = numeric
    ? (a, b) => leading(a[1]) - leading(b[1])
    : (a, b) => a[1].localeCompare(b[1], "en", { numeric: true });
  known.sort((a, b) => (ascending ? compare(a, b) : compare(b, a)));
  // missing values stay last in either order
  body.append(...known.map(([row]) => row), ...rows.filter(([, text]) => missing.has(text)).map(([row]) => row));
}

for (const table of document.querySelectorAll("table")) {
  if (table.tBodies[0].rows.length < 2) continue;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sort(table, column, ascending);
    });
  });
}

const boxes = [...document.querySelectorAll(".wide")];
function settle() {
  const wide = boxes.map((box) => box.scrollWidth > box.clientWidth);
  boxes.forEach((box, i) => (wide[i] ? box.setAttribute("tabindex", "0") : box.removeAttribute("tabindex")));
}
settle();
addEventListener("resize", settle);
document.addEventListener("toggle", settle, true);

let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});
