// @ts-check
// Lets a file be dropped on or pasted into the YAML text.

import { toast } from "./toast.js";

const MOST = 256 * 1024;

/**
 * @param {HTMLTextAreaElement} area
 * @param {HTMLElement} zone
 * @param {(content: string) => void} take
 */
export function acceptFiles(area, zone, take) {
  zone.addEventListener("dragover", (event) => {
    event.preventDefault();
    area.classList.add("dropping");
  });
  zone.addEventListener("dragleave", () => area.classList.remove("dropping"));
  zone.addEventListener("drop", (event) => {
    area.classList.remove("dropping");
    const file = event.dataTransfer?.files[0];
    if (!file) return;
    event.preventDefault();
    read(file, take);
  });
  area.addEventListener("paste", (event) => {
    const file = event.clipboardData?.files[0];
    if (!file) return;
    event.preventDefault();
    read(file, take);
  });
}

async function read(file, take) {
  if (file.size > MOST) {
    toast(`${file.name} is larger than 256 KiB, too large for a specification.`, "error");
    return;
  }
  const content = await file.text();
  if (content.includes("\u0000") || content.includes("\ufffd")) toast(`${file.name} is not UTF-8 text.`, "error");
  else take(content);
}
