/** Time as the program sees it. Tests pass their own, so that nothing has to wait for the wall. */
export interface Clock {
  /** Wall clock, milliseconds since the epoch. It may jump: for time stamps and signature tolerance only. */
  now(): number;
  /** Milliseconds that never go back: for rotation, retries, rates and deadlines. */
  monotonic(): number;
  /** Calls back once after `ms`, never earlier; the returned function cancels it. Does not keep the process alive. */
  after(ms: number, callback: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  after: (ms, callback) => {
    const due = performance.now() + ms;
    const wait = (left: number): NodeJS.Timeout =>
      setTimeout(() => {
        // Node's timers count whole milliseconds and can be early: a pause of a sink would then not be over.
        const rest = due - performance.now();
        if (rest > 0) timer = wait(Math.ceil(rest));
        else callback();
      }, left).unref();
    let timer = wait(ms);
    return () => clearTimeout(timer);
  },
};
