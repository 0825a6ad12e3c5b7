import type { Scheduler } from './scheduler.ts';

const START = Date.UTC(2026, 0, 1, 0, 0, 0);
const RealDate = Date;
const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setInterval: globalThis.setInterval,
  clearInterval: globalThis.clearInterval,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  performanceNow: performance.now.bind(performance),
  random: Math.random.bind(Math),
  timeout: AbortSignal.timeout.bind(AbortSignal),
};

/** A handle of a timer: what Node's answers to. */
function handle(stop: () => void): object {
  const timer = {
    cancel: stop,
    ref: () => timer,
    unref: () => timer,
    hasRef: () => true,
    refresh: () => timer,
  };
  return timer;
}

function cancel(timer: unknown): void {
  if (timer === undefined || timer === null) return;
  if (typeof timer === 'object' && 'cancel' in timer) (timer as { cancel: () => void }).cancel();
  else real.clearTimeout(timer as NodeJS.Timeout);
}

function replace(target: object, name: string, value: unknown): void {
  Reflect.defineProperty(target, name, { value, configurable: true, writable: true });
}

/** Time and chance are the scheduler's until `restore`. */
export function simulateGlobals(scheduler: Scheduler): () => void {
  const after = (run: (...args: unknown[]) => void, ms = 0, ...args: unknown[]): object =>
    handle(scheduler.after(ms, () => run(...args)));
  replace(globalThis, 'setTimeout', after);
  replace(globalThis, 'clearTimeout', cancel);
  replace(globalThis, 'setInterval', (run: () => void, ms: number) => {
    const timer = { stop: () => {} };
    const again = (): void => {
      timer.stop = scheduler.after(ms, () => {
        again();
        run();
      });
    };
    again();
    return handle(() => timer.stop());
  });
  replace(globalThis, 'clearInterval', cancel);
  replace(globalThis, 'setImmediate', (run: (...args: unknown[]) => void, ...args: unknown[]) => {
    scheduler.later(() => run(...args));
    return handle(() => undefined);
  });
  replace(globalThis, 'clearImmediate', cancel);
  class SimulatedDate extends RealDate {
    constructor(...args: readonly unknown[]) {
      if (args.length === 0) super(START + Math.floor(scheduler.now));
      else super(...(args as [number]));
    }
    static override now(): number {
      return START + Math.floor(scheduler.now);
    }
  }
  replace(globalThis, 'Date', SimulatedDate);
  replace(performance, 'now', () => scheduler.now);
  replace(Math, 'random', () => scheduler.random.next());
  replace(AbortSignal, 'timeout', (ms: number) => {
    const controller = new AbortController();
    scheduler.after(ms, () => controller.abort(new DOMException('The operation timed out', 'TimeoutError')));
    return controller.signal;
  });
  return () => {
    for (const name of [
      'setTimeout',
      'clearTimeout',
      'setInterval',
      'clearInterval',
      'setImmediate',
      'clearImmediate',
    ] as const)
      replace(globalThis, name, real[name]);
    replace(globalThis, 'Date', RealDate);
    replace(performance, 'now', real.performanceNow);
    replace(Math, 'random', real.random);
    replace(AbortSignal, 'timeout', real.timeout);
  };
}

export { START };
