import { onAbort } from './abort.ts';

/** Work did not answer in time, although its signal told it to. */
export class TimedOut extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'TimedOut';
  }
}

export interface TimeLimit {
  /** Ends the work early. */
  readonly outer: AbortSignal;
  /** Milliseconds until its signal aborts. */
  readonly ms: number;
  /** Milliseconds it has from then on to answer with what it knows. */
  readonly grace: number;
  readonly after: (ms: number, callback: () => void) => () => void;
  /** Of the error. */
  readonly message: string;
}

/**
 * The answer of work that might never answer. What it does after its time is its own affair: a late answer is ignored, and so
 * is a late rejection.
 * @throws TimedOut
 */
export async function withTimeLimit<T>(
  work: (signal: AbortSignal) => Promise<T>,
  { outer, ms, grace, after, message }: TimeLimit,
): Promise<T> {
  const own = new AbortController();
  const forget = onAbort(outer, () => own.abort(outer.reason));
  const late = Promise.withResolvers<never>();
  let cancel = after(ms, () => {
    own.abort(new TimedOut(message));
    cancel = after(grace, () => late.reject(new TimedOut(message)));
  });
  try {
    return await Promise.race([work(own.signal), late.promise]);
  } finally {
    cancel();
    forget();
  }
}
