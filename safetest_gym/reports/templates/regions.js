"use strict";
(() => {
  // Only what can be scrolled needs the focus: the arrow keys scroll it.
  const update = (region) => {
    const more = region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight;
    region.tabIndex = more ? 0 : -1;
  };
  const observer = new ResizeObserver((entries) => entries.forEach((entry) => update(entry.target)));
  document.querySelectorAll(".scroll").forEach((region) => observer.observe(region));
})();
