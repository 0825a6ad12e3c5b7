/** Time as the program sees it. Tests pass their own, so that nothing has to wait for the wall. */
export interface Clock {
  /** Wall clock, milliseconds since the Unix epoch. It may jump; use it for stamps and signature tolerance only. */
  now(): number;
  /** Milliseconds that only go forward; use it for rotation, retries, rates and deadlines. */
  monotonic(): number;
  /** Calls back once after `ms`; the returned function cancels it. Never keeps the process alive by itself. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const timer = setTimeout(callback, ms).unref();
    return () => clearTimeout(timer);
  },
};
