"use strict";
(() => {
  // What repeats a chart or a picture as a table stays closed on paper.
  const opened = [];
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details.paper:not([open])").forEach((d) => { d.open = true; opened.push(d); });
  });
  addEventListener("afterprint", () => { opened.splice(0).forEach((d) => { d.open = false; }); });

  const box = document.getElementById("player-box");
  if (!box) return;
  const films = JSON.parse(document.getElementById("film-data").textContent);
  const part = (name) => document.getElementById("film-" + name);
  const picture = part("picture"), status = part("status"), slider = part("slider");
  const play = part("play"), values = part("values"), marks = part("marks");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let film = films[0], place = 0, timer = 0;

  const sentence = (frame) => {
    const words = ["State " + frame.step + " of " + film.steps];
    if (frame.action) words[0] += ", after " + frame.action + ": " + frame.change;
    words[0] += ".";
    if (!frame.next) words.push("This state fails.");
    else if (frame.fault) words.push("The next decision, " + frame.next + ", is a fault.");
    return words.join(" ");
  };

  const show = (wanted) => {
    place = Math.max(0, Math.min(film.frames.length - 1, wanted));
    const frame = film.frames[place], before = film.frames[place - 1];
    picture.src = frame.picture;
    picture.alt = "Picture of state " + frame.step;
    status.textContent = sentence(frame);
    slider.value = place;
    slider.setAttribute("aria-valuetext", "state " + frame.step + " of " + film.steps);
    [...values.rows].forEach((row, i) => {
      row.cells[1].textContent = frame.values[i];
      row.className = before && before.values[i] !== frame.values[i] ? "bad" : "";
    });
    const atEnd = place === film.frames.length - 1;
    disable("first", place === 0);
    disable("back", place === 0);
    disable("next", atEnd);
    disable("last", atEnd);
    if (atEnd) stop();
  };

  // A button that has the focus keeps it: aria-disabled instead of disabled.
  const disable = (name, off) => part(name).setAttribute("aria-disabled", off);

  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
    status.setAttribute("aria-live", "polite");
  };

  const start = () => {
    if (place === film.frames.length - 1) show(0);
    status.setAttribute("aria-live", "off"); // not a word per frame
    play.textContent = "Pause";
    timer = setInterval(() => show(place + 1), calm.matches ? 2000 : 600);
  };

  const step = (by) => { stop(); show(place + by); };

  const faults = () => film.frames.flatMap((frame, i) => (frame.fault ? [i] : []));

  const toFault = () => {
    stop();
    const all = faults();
    show(all.find((i) => i > place) ?? all[0]);
  };

  const load = (number) => {
    stop();
    film = films[number];
    slider.max = film.frames.length - 1;
    values.replaceChildren(...film.variables.map((name) => {
      const row = document.createElement("tr"), head = document.createElement("th");
      head.scope = "row";
      head.textContent = name;
      row.append(head, document.createElement("td"));
      return row;
    }));
    marks.replaceChildren(...faults().map((i) => {
      const mark = document.createElement("span");
      mark.style.left = 100 * i / Math.max(1, film.frames.length - 1) + "%";
      mark.textContent = "fault";
      return mark;
    }));
    part("fault").hidden = !faults().length;
    show(0);
  };

  part("first").addEventListener("click", () => step(-Infinity));
  part("back").addEventListener("click", () => step(-1));
  part("next").addEventListener("click", () => step(1));
  part("last").addEventListener("click", () => step(Infinity));
  part("fault").addEventListener("click", toFault);
  play.addEventListener("click", () => (timer ? stop() : start()));
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  const choice = part("choice");
  if (choice) choice.addEventListener("change", () => load(Number(choice.value)));

  const keys = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity };
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target === slider || event.target.tagName === "SELECT") return;
    if (event.key in keys) step(keys[event.key]);
    else if (event.key === " " && event.target === box) (timer ? stop : start)();
    else return;
    event.preventDefault();
  });

  box.hidden = false;
  load(0);
})();
