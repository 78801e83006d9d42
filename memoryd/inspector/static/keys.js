// Keys for what the page offers anyway: nothing here is needed, and nothing is asked of any server.
"use strict";

document.documentElement.classList.add("scripts"); // what the pages say of keys is shown

const typing = (element) => element.closest("input, textarea, select, [contenteditable]") !== null;
const items = () => [...document.querySelectorAll(".item")].filter((item) => item.offsetParent !== null);

let sent = false; // a form is sent once

function move(step) {
  const all = items();
  if (all.length === 0) return;
  const at = all.findIndex((item) => item.contains(document.activeElement));
  const next = all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))];
  const link = next.querySelector("a.open, a.id, a, button, summary") ?? next;
  if (link === next) next.tabIndex = -1;
  link.focus();
  next.scrollIntoView({ block: "nearest" });
}

// who has decided one of several goes on from there
const chosenBefore = new URLSearchParams(location.search).get("chosen");
if (chosenBefore !== null && items().length > 0) {
  const all = items();
  (all[Math.min(Number(chosenBefore) || 0, all.length - 1)].querySelector("a, button") ?? document.body).focus();
}

// what is typed at one of several items is there again when another one was decided
for (const field of document.querySelectorAll("[data-draft]")) {
  const place = `draft ${field.dataset.draft}`;
  field.value ||= sessionStorage.getItem(place) ?? "";
  field.addEventListener("input", () => sessionStorage.setItem(place, field.value));
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.repeat) return;
  if (typing(event.target)) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "j" || event.key === "k") {
    move(event.key === "j" ? 1 : -1);
    event.preventDefault();
    return;
  }
  const chosen = document.activeElement?.closest(".item");
  const named = [...document.querySelectorAll("[data-key]")].filter((element) => element.dataset.key === event.key);
  const wanted = named.find((element) => chosen?.contains(element)) ?? named[0];
  if (wanted === undefined || sent) return;
  event.preventDefault();
  sent = wanted.matches("button");
  if (wanted.matches("input")) {
    wanted.focus();
    wanted.select();
  } else {
    wanted.click();
    if (wanted.matches("summary")) requestAnimationFrame(() => wanted.closest("details").scrollIntoView({ block: "end" }));
  }
});
