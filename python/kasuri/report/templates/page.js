// Sorts a table by the column whose head is pressed, by mouse or keyboard, and shows all columns on request.
for (const table of document.querySelectorAll("table.sorted")) {
  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("button").addEventListener("click", () => {
      const descending = head.getAttribute("aria-sort") === "ascending";
      for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const text = (row) => row.cells[head.cellIndex].textContent.trim();
      const number = (row) => {
        const value = row.cells[head.cellIndex].dataset.value ?? text(row);
        return value === "" ? NaN : Number(value);
      };
      const compare = (one, other) => {
        const a = number(one), b = number(other);
        if (isNaN(a) || isNaN(b)) return isNaN(a) - isNaN(b) || text(one).localeCompare(text(other), undefined, { numeric: true });
        return a - b;
      };
      const rows = [...table.tBodies[0].rows].sort(compare);
      table.tBodies[0].append(...(descending ? rows.reverse() : rows));
    });
  }
}
document.querySelector("#all")?.addEventListener("change", (event) => {
  document.querySelector(".runs").classList.toggle("all", event.target.checked);
});

// Says what a drawing shows where somebody points, taps, or goes with the arrow keys. Marks are [x, y, words] or [x, y, x, y, ..., words].
const tip = document.querySelector("#tip");
const hide = () => { if (tip) tip.hidden = true; };
const distance = (mark, x, y) => {
  if (mark.length === 3) return Math.hypot(mark[0] - x, mark[1] - y) - 3;
  let least = Infinity;
  for (let i = 0; i + 4 < mark.length; i += 2) {
    const [ax, ay, bx, by] = mark.slice(i, i + 4), dx = bx - ax, dy = by - ay, square = dx * dx + dy * dy;
    const part = square ? Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / square)) : 0;
    least = Math.min(least, Math.hypot(ax + part * dx - x, ay + part * dy - y));
  }
  return least;
};
for (const data of document.querySelectorAll("script.marks")) {
  const figure = data.closest("figure"), svg = figure.querySelector("svg"), marks = JSON.parse(data.textContent);
  let current = -1;
  const show = (mark, x, y) => {
    tip.textContent = mark[mark.length - 1];
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - box.width - 4))}px`;
    tip.style.top = `${y + 14 + box.height > innerHeight ? y - box.height - 10 : y + 14}px`;
  };
  const point = (event) => {
    const matrix = svg.getScreenCTM(), place = new DOMPoint(event.clientX, event.clientY).matrixTransform(matrix.inverse());
    let best = null, least = 9 / matrix.a;
    marks.forEach((mark, number) => {
      const away = distance(mark, place.x, place.y);
      if (away < least) { least = away; best = mark; current = number; }
    });
    if (best) show(best, event.clientX, event.clientY); else hide();
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step) return;
    event.preventDefault();
    current = (current + step + marks.length) % marks.length;
    const [x, y] = marks[current], place = new DOMPoint(x, y).matrixTransform(svg.getScreenCTM());
    show(marks[current], place.x, place.y);
  });
}
addEventListener("scroll", hide, { passive: true });
