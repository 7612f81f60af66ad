// @ts-check
// One loop draws whatever is stale, at most ten times a second and never more than a quarter of the main thread.

const SHORTEST = 100;
const SHARE = 4;

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
  for (const drawable of [...stale]) {
    if (!drawable.visible || drawable.held) continue;
    stale.delete(drawable);
    drawable.draw();
    statistics.draws += 1;
  }
  const cost = performance.now() - started;
  statistics.rounds += 1;
  statistics.milliseconds += cost;
  statistics.slowest = Math.max(statistics.slowest, cost);
  next = now + Math.max(SHORTEST, cost * SHARE);
  running = [...stale].some((drawable) => drawable.visible);
  if (running) requestAnimationFrame(round);
}
