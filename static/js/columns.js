// @ts-check
// Which columns of the jobs table a person wants to see, remembered in their browser.

const KEY = "lockstep-job-columns";

/** Binds the boxes of `menu` (their values are columns) to `table`; a column left out is a class on it. */
export function bindColumns(menu, table) {
  const boxes = /** @type {HTMLInputElement[]} */ ([...menu.querySelectorAll("input")]);
  const show = (left) => {
    for (const box of boxes) {
      box.checked = !left.has(box.value);
      table.classList.toggle(`without-${box.value}`, !box.checked);
    }
  };
  menu.addEventListener("change", () => {
    const left = new Set(boxes.filter((box) => !box.checked).map((box) => box.value));
    show(left);
    remember([...left]);
  });
  // Another tab of the same person follows.
  addEventListener("storage", (event) => event.key === KEY && show(remembered()));
  show(remembered());
}

function remembered() {
  try {
    const left = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return new Set(Array.isArray(left) ? left : []);
  } catch {
    return new Set(); // storage is closed to us, or holds something else
  }
}

function remember(left) {
  try {
    localStorage.setItem(KEY, JSON.stringify(left));
  } catch {
    // Then it lasts as long as the page.
  }
}
