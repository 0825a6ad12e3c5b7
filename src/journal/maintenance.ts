import type { Clock } from '../core/clock.ts';
import type { Remote } from '../lib/remote.ts';
import type { Store } from './store.ts';

/** Milliseconds between two looks, and while there is more to do. */
const EVERY = 5000;
const SOON = 50;

/** Has the store clear away what is past its time, a bounded amount at a time, until the returned function is called. */
export function maintain(store: Pick<Remote<Store>, 'maintain'>, clock: Clock): () => void {
  let isOver = false;
  let cancel: (() => void) | undefined;
  const look = (delay: number): void => {
    if (isOver) return;
    cancel = clock.after(delay, () => {
      store.maintain(clock.now()).then(
        (more) => look(more ? SOON : EVERY),
        () => look(EVERY),
      );
    });
  };
  look(EVERY);
  return () => {
    isOver = true;
    cancel?.();
  };
}
