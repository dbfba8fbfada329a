// Sorts the table of runs by the column whose head is clicked, and shows all columns on request.
for (const head of document.querySelectorAll(".runs th")) {
  head.addEventListener("click", () => {
    const body = head.closest("table").tBodies[0];
    const descending = head.getAttribute("aria-sort") === "ascending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    const value = (row) => row.cells[head.cellIndex];
    const compare = (one, other) => {
      const a = value(one).dataset.value, b = value(other).dataset.value;
      return a && b ? a - b : (a ? -1 : b ? 1 : value(one).textContent.localeCompare(value(other).textContent));
    };
    const rows = [...body.rows].sort(compare);
    body.append(...(descending ? rows.reverse() : rows));
  });
}
document.querySelector("#all")?.addEventListener("change", (event) => {
  document.querySelector(".runs").classList.toggle("all", event.target.checked);
});
