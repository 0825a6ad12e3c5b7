import { AsyncLocalStorage } from 'node:async_hooks';

/** Code that is not ours, and whoever answers for it. */
export interface Guest {
  /** For the log: the file it came from. */
  readonly name: string;
  /** Takes an error of its that nobody caught; false when there is nobody it could be brought home to. */
  blame(error: unknown): boolean;
}

const running = new AsyncLocalStorage<Guest | null>();

/** Runs code of a guest. Whatever it starts belongs to the guest as well: timers, promises, callbacks. */
export function onBehalfOf<T>(guest: Guest, work: () => T): T {
  return running.run(guest, work);
}

/** Runs our own code that a guest has called: what it starts is ours. */
export function onOurOwn<T>(work: () => T): T {
  return running.run(null, work);
}

/** Whose code is running. In a handler of uncaught errors: the code that threw, or made the promise. */
export function currentGuest(): Guest | null {
  return running.getStore() ?? null;
}
