"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const MOST = 40, RANGES = 20;
  const maps = JSON.parse(document.getElementById("map-data").textContent);

  const element = (name, attributes, text) => {
    const made = document.createElementNS(NS, name);
    for (const key in attributes) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const short = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(3));

  // The columns (or rows) of a map: their names, and which one a value belongs to.
  const axisOf = (variable, values) => {
    if (variable.domain) {
      const [lower, upper] = variable.domain;
      const names = [];
      for (let v = lower; v <= upper; v++) names.push(variable.labels ? variable.labels[v] : String(v));
      return { names, place: (value) => value - lower };
    }
    const distinct = [...new Set(values)].sort((a, b) => a - b);
    if (distinct.length <= MOST) {
      const places = new Map(distinct.map((value, i) => [value, i]));
      return { names: distinct.map(short), place: (value) => places.get(value) };
    }
    const lower = distinct[0], width = (distinct[distinct.length - 1] - lower) / RANGES;
    const names = Array.from({ length: RANGES }, (_, i) => "from " + short(lower + i * width));
    return { names, place: (value) => Math.min(RANGES - 1, Math.floor((value - lower) / width)) };
  };

  const count = (data, xi, yi, which) => {
    const x = axisOf(data.variables[xi], data.states.map((s) => s[xi]));
    const y = axisOf(data.variables[yi], data.states.map((s) => s[yi]));
    const cells = new Map();
    let total = 0;
    data.states.forEach((state, i) => {
      if (which !== "all" && data.fixed[i] !== Number(which)) return;
      const key = y.place(state[yi]) * x.names.length + x.place(state[xi]);
      cells.set(key, (cells.get(key) || 0) + 1);
      total += 1;
    });
    return { x, y, cells, total };
  };

  const draw = (figure, data) => {
    const picked = {};
    figure.querySelectorAll("select").forEach((s) => { picked[s.dataset.axis] = s.value; });
    const xi = Number(picked.x), yi = Number(picked.y);
    const { x, y, cells, total } = count(data, xi, yi, picked.which);
    const names = [data.variables[xi].name, data.variables[yi].name];
    const order = [...cells].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    const at = (key) => [x.names[key % x.names.length], y.names[Math.floor(key / x.names.length)]];
    const canvas = figure.querySelector(".canvas");
    canvas.replaceChildren(picture(canvas.clientWidth || 640, x, y, cells, names));
    let words = total + (total === 1 ? " fault" : " faults");
    if (order.length && order[0][1] > 1) {
      const [column, row] = at(order[0][0]);
      words += ", most of them (" + order[0][1] + ") where " + names[0] + " is " + column;
      if (xi !== yi) words += " and " + names[1] + " is " + row;
    }
    figure.querySelector(".status").textContent = words + ".";
    canvas.firstChild.setAttribute("aria-label", "Map of " + words);
    table(figure, names, order.slice(0, 12).map(([key, n]) => [...at(key), n]));
  };

  const table = (figure, names, rows) => {
    figure.querySelector(".x-name").textContent = names[0];
    figure.querySelector(".y-name").textContent = names[1];
    figure.querySelector("tbody").replaceChildren(...rows.map((row) => {
      const tr = document.createElement("tr");
      row.forEach((text, i) => {
        const cell = document.createElement(i ? "td" : "th");
        if (!i) cell.scope = "row";
        cell.textContent = text;
        tr.append(cell);
      });
      return tr;
    }));
  };

  const picture = (width, x, y, cells, names) => {
    const longest = Math.max(...y.names.map((n) => n.length));
    const left = Math.min(150, 14 + 7 * longest), top = 24, gap = 1;
    const size = (width - left - 4) / x.names.length;
    const tall = Math.max(12, Math.min(size, 44, 420 / y.names.length));
    const wide = Math.min(size, 3 * tall);
    const height = top + tall * y.names.length + 44;
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img" });
    svg.append(element("text", { x: left, y: 14, class: "name" }, "↑ " + names[1]));
    const most = Math.max(1, ...cells.values());
    y.names.forEach((_, row) => x.names.forEach((_, column) => {
      const n = cells.get(row * x.names.length + column) || 0;
      const place = { x: left + column * wide, y: top + (y.names.length - 1 - row) * tall };
      const box = { ...place, width: wide - gap, height: tall - gap, rx: 2, class: n ? "cell" : "none" };
      if (n) box["fill-opacity"] = (0.22 + 0.78 * Math.log1p(n) / Math.log1p(most)).toFixed(2);
      const cell = element("rect", box);
      if (n) cell.append(element("title", {}, `${names[0]} ${x.names[column]}, ${names[1]} ${y.names[row]}: ${n}`));
      svg.append(cell);
    }));
    const everyRow = Math.ceil(14 / tall);
    y.names.forEach((name, row) => {
      if (row % everyRow) return;
      const middle = top + (y.names.length - row - 0.5) * tall + 4;
      svg.append(element("text", { x: left - 7, y: middle, "text-anchor": "end" }, name.slice(0, 20)));
    });
    const everyColumn = Math.ceil((8 * Math.max(...x.names.map((n) => n.length)) + 6) / wide);
    const foot = top + tall * y.names.length;
    x.names.forEach((name, column) => {
      if (column % everyColumn) return;
      svg.append(element("text", { x: left + (column + 0.5) * wide, y: foot + 15, "text-anchor": "middle" }, name));
    });
    const end = left + wide * x.names.length;
    svg.append(element("text", { x: Math.min(end, width - 4), y: foot + 36, "text-anchor": "end", class: "name" }, names[0] + " →"));
    return svg;
  };

  document.querySelectorAll("[data-map]").forEach((figure) => {
    const data = maps[Number(figure.dataset.map)];
    figure.hidden = false;
    const again = () => draw(figure, data);
    figure.querySelectorAll("select").forEach((s) => s.addEventListener("change", again));
    let width = 0;
    new ResizeObserver(() => {
      const now = figure.querySelector(".canvas").clientWidth;
      if (now !== width) { width = now; again(); }
    }).observe(figure);
    again();
  });
})();
