// @ts-check
// One loop draws whatever is stale, at most ten times a second and never more than a quarter of the main thread.

const SHORTEST = 100;
const SHARE = 4;
/** Milliseconds that one round may take before the rest waits for the next, so that the page answers in between. */
const BUDGET = 60;
const LONGEST = 1000;

const stale = new Set();
let running = false;
let next = 0;
/** What drawing costs, for tests and for the curious: `lockstepDraws` in the console. */
export const statistics = { rounds: 0, draws: 0, milliseconds: 0, slowest: 0 };
globalThis.lockstepDraws = statistics;

/** Marks `drawable` ({visible, held, draw()}) as stale; it is drawn soon, once, if it can be seen. */
export function requestDraw(drawable) {
  stale.add(drawable);
  if (!running) {
    running = true;
    requestAnimationFrame(round);
  }
}

function round(now) {
  if (now < next) {
    requestAnimationFrame(round);
    return;
  }
  const started = performance.now();
  let cost = 0;
  for (const drawable of [...stale]) {
    if (!drawable.visible || drawable.held) continue;
    stale.delete(drawable);
    drawable.draw();
    statistics.draws += 1;
    cost = performance.now() - started;
    if (cost > BUDGET) break;
  }
  statistics.rounds += 1;
  statistics.milliseconds += cost;
  statistics.slowest = Math.max(statistics.slowest, cost);
  const waiting = [...stale].some((drawable) => drawable.visible && !drawable.held);
  // What was cut short goes on soon; what is up to date may rest.
  next = now + (waiting ? cost : Math.min(LONGEST, Math.max(SHORTEST, cost * SHARE)));
  running = waiting;
  if (running) requestAnimationFrame(round);
}
