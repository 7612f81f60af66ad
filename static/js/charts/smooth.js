// @ts-check
// Exponential moving average that means the same whether a series was thinned or not.

/** Points per view at which one point is one step of the average. */
const VIEWPORT = 1000;

/**
 * Debiased EMA over (xs, values). The decay grows with the distance between two points, measured in thousandths of the
 * whole length (or in points where there are fewer), so thinning does not change the curve. Non-finite values stay what
 * they are and do not enter the average.
 * @param {number[]} xs @param {number[]} values @param {number} weight 0 (raw) to below 1
 * @returns {number[]}
 */
export function smooth(xs, values, weight) {
  if (weight <= 0 || values.length < 3) return values;
  const range = xs[xs.length - 1] - xs[0];
  const unit = range > 0 ? range / Math.min(VIEWPORT, values.length - 1) : 1;
  let average = 0;
  let debias = 0;
  let previous = xs[0];
  return values.map((value, index) => {
    if (!Number.isFinite(value)) return value;
    const distance = debias === 0 ? 1 : Math.max(0, xs[index] - previous) / unit;
    const decay = weight ** Math.max(distance, 1e-9);
    average = average * decay + (1 - decay) * value;
    debias = debias * decay + (1 - decay);
    previous = xs[index];
    return debias > 0 ? average / debias : value;
  });
}
