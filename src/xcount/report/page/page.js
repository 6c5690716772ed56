"use strict";
// The page is whole without this script. It adds: exact numbers on hover, search and filter,
// sorting by a column, the gap slider, and links that open what they lead to.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const one = (selector, root = document) => root.querySelector(selector);

  // Hover: the texts that SVG keeps in <title>, at once and beside the pointer.
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.setAttribute("role", "tooltip");
  tip.hidden = true;
  document.body.append(tip);
  for (const title of all("svg title")) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
  const show = (event) => {
    const target = event.target.closest?.("[data-tip]");
    tip.hidden = !target;
    if (!target) return;
    tip.textContent = target.dataset.tip;
    const { width, height } = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, document.documentElement.clientWidth - width - 8);
    const below = event.clientY + 18;
    tip.style.left = `${Math.max(8, x)}px`;
    tip.style.top = `${below + height > innerHeight ? event.clientY - height - 10 : below}px`;
  };
  addEventListener("pointermove", show);
  addEventListener("pointerdown", show);
  addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A feature under the pointer is lit wherever it stands.
  let lit = [];
  addEventListener("pointerover", (event) => {
    const label = event.target.closest?.("[data-sensitive]")?.dataset.sensitive;
    for (const series of lit) series.classList.remove("lit");
    lit = label === undefined ? [] : all(".series[data-sensitive]").filter(
      (series) => series.dataset.sensitive === label);
    for (const series of lit) series.classList.add("lit");
  });

  // Search and filter.
  const find = one("#find"), verdict = one("#with-verdict"), found = one("#found");
  if (find) {
    const rows = all("main [data-sensitive]:not(.series)");
    const filter = () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = verdict?.value ?? "";
      const names = new Set();
      for (const row of rows) {
        const name = row.dataset.sensitive.toLowerCase();
        const fits = words.every((word) => name.includes(word))
          && (!wanted || !("verdict" in row.dataset) || row.dataset.verdict === wanted);
        row.hidden = !fits;
        if (fits) names.add(row.dataset.sensitive);
      }
      const isOn = words.length > 0 || wanted !== "";
      found.textContent = isOn ? `${names.size} found` : "";
      for (const box of all("details.rest")) if (isOn) box.open = true;
    };
    find.addEventListener("input", filter);
    verdict?.addEventListener("change", filter);
    one(".tools").hidden = rows.length < 2;
  }

  // Sorting: by number where cells have one, else by text; a second click turns it round.
  const collator = new Intl.Collator("en", { numeric: true });
  const byColumn = (index, sign) => (a, b) => {
    const [x, y] = [a.cells[index], b.cells[index]];
    const [v, w] = [x.dataset.v, y.dataset.v];
    if (v !== undefined && w !== undefined) return sign * (v - w);
    if (v !== w) return v === undefined ? 1 : -1; // without a number: last, either way
    return sign * collator.compare(x.textContent, y.textContent);
  };
  for (const table of all("table.sort")) {
    all("thead th", table).forEach((head, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const isNumber = one(`td:nth-child(${index + 1})[data-v]`, table.tBodies[0]) !== null;
        const first = isNumber ? "descending" : "ascending";
        const other = isNumber ? "ascending" : "descending";
        const order = head.getAttribute("aria-sort") === first ? other : first;
        for (const each of all("thead th", table)) each.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", order);
        const sorted = [...table.tBodies[0].rows].sort(byColumn(index, order === "ascending" ? 1 : -1));
        table.tBodies[0].append(...sorted);
      });
    });
  }

  // The gap slider: a cursor over the curves, and the list below at that gap.
  for (const figure of all("[data-stops]")) {
    const stops = JSON.parse(figure.dataset.stops);
    const slider = one("input[type=range]", figure), cursor = one(".cursor", figure);
    const at = one(".at", figure);
    const nearest = (x) => {
      const distances = stops.map((stop) => Math.abs(stop[0] - x));
      return distances.indexOf(Math.min(...distances));
    };
    let index = nearest(slider.value);
    const move = (to) => {
      index = Math.max(0, Math.min(stops.length - 1, to));
      const [x, text] = stops[index];
      slider.value = x;
      for (const end of ["x1", "x2"]) cursor.setAttribute(end, `${x}%`);
      at.textContent = text;
      slider.setAttribute("aria-valuetext", `gap ${text}`);
      for (const row of all("[data-at]", figure)) {
        const [share, width, exact] = JSON.parse(row.dataset.at)[index];
        one("b", row).textContent = share;
        one(".fill", row).setAttribute("width", `${width}%`);
        one(".bar", row).dataset.tip = exact;
      }
    };
    slider.addEventListener("input", () => move(nearest(slider.value)));
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 };
    slider.addEventListener("keydown", (event) => {
      if (!(event.key in steps)) return;
      event.preventDefault();
      move(index + steps[event.key]);
    });
    const follow = (event) => {
      if (event.type === "pointermove" && !(event.buttons & 1)) return;
      const box = cursor.ownerSVGElement.getBoundingClientRect();
      move(nearest(100 * (event.clientX - box.left) / box.width));
    };
    cursor.ownerSVGElement.addEventListener("pointerdown", follow);
    cursor.ownerSVGElement.addEventListener("pointermove", follow);
    for (const part of all("[data-script]", figure)) part.removeAttribute("hidden");
    cursor.removeAttribute("visibility");
    move(index);
  }

  // Links lead into folded parts; paper has everything unfolded.
  const unfold = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (!target) return;
    for (let box = target; box; box = box.parentElement.closest("details")) {
      if (box.tagName === "DETAILS") box.open = true;
    }
    const panel = target.closest(".tabs > section");
    if (panel) {
      const at = all(":scope > section", panel.parentElement).indexOf(panel);
      all(":scope > input", panel.parentElement)[at].checked = true;
    }
    target.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open]):not(.same)");
    for (const box of folded) box.open = true;
  });
  addEventListener("afterprint", () => { for (const box of folded) box.open = false; });
})();
