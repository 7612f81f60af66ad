// @ts-check
// Keeps a long series small without losing what stands out: extremes, both ends, and the first of each run of NaN or inf.

/**
 * Indexes worth keeping of `values`, ascending, about `target` of them.
 * @param {ArrayLike<number>} values
 * @param {number} target
 * @returns {number[]}
 */
export function keepIndexes(values, target) {
  const length = values.length;
  if (length <= target) return Array.from({ length }, (_, index) => index);
  const buckets = Math.max(1, Math.floor(target / 2));
  const kept = new Set([0, length - 1]);
  for (let bucket = 0; bucket < buckets; bucket++) {
    const from = Math.floor((bucket * length) / buckets);
    const to = Math.floor(((bucket + 1) * length) / buckets);
    addExtremes(values, from, to, kept);
  }
  return [...kept].sort((a, b) => a - b);
}

function addExtremes(values, from, to, kept) {
  let low = -1;
  let high = -1;
  let odd = -1;
  for (let index = from; index < to; index++) {
    if (!Number.isFinite(values[index])) {
      if (odd < 0) odd = index;
      continue;
    }
    if (low < 0 || values[index] < values[low]) low = index;
    if (high < 0 || values[index] > values[high]) high = index;
  }
  for (const index of [low, high, odd]) if (index >= 0) kept.add(index);
}
