"use strict";
(() => {
  // Every picture is a button that shows it as large as the screen allows.
  const pictures = document.querySelectorAll(".card img, .screen img");
  if (!pictures.length) return;
  const dialog = document.createElement("dialog");
  dialog.className = "zoom";
  dialog.setAttribute("aria-label", "Picture");
  const close = document.createElement("button");
  close.type = "button";
  close.textContent = "Close";
  const large = document.createElement("img");
  large.alt = "Picture";
  const frame = document.createElement("div");
  frame.append(large);
  dialog.append(frame, close);
  document.body.append(dialog);
  dialog.addEventListener("click", () => dialog.close());

  pictures.forEach((picture) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "enlarge";
    button.title = "Enlarge";
    picture.replaceWith(button);
    button.append(picture);
    button.addEventListener("click", () => {
      large.src = picture.src;
      large.alt = picture.alt;
      dialog.showModal();
    });
  });
})();
