import { AsyncLocalStorage } from 'node:async_hooks';

/** Code that is not part of this program, such as a sink module of the user. */
export interface Guest {
  /** The file it came from, for the log. */
  readonly name: string;
  /** Handles an uncaught error of the guest. @returns false when it cannot */
  blame(error: unknown): boolean;
}

const running = new AsyncLocalStorage<Guest | null>();

/** Runs code of a guest. The timers, promises and callbacks that it starts belong to the guest too. */
export function onBehalfOf<T>(guest: Guest, work: () => T): T {
  return running.run(guest, work);
}

/** Runs our own code that a guest has called; what it starts is ours. */
export function onOurOwn<T>(work: () => T): T {
  return running.run(null, work);
}

/** The guest whose code is running. In a handler of uncaught errors: whose code threw, or made the promise; null for our own. */
export function currentGuest(): Guest | null {
  return running.getStore() ?? null;
}
