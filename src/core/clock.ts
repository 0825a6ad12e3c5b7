/** Time as the program sees it. Tests pass their own, so that nothing has to wait for the wall. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. It may jump: for time stamps and signature tolerance only. */
  now(): number;
  /** Milliseconds that never go back: for rotation, retries, rates and deadlines. */
  monotonic(): number;
  /** Calls back once after `ms`; the returned function cancels it. Does not keep the process alive. */
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
