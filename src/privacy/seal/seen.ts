import { resolve } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import type { KeyLedger } from '../../core/proof.ts';
import type { KeyRing } from './key-ring.ts';
import type { KeyProblem } from './tombstones.ts';

type Seen = NonNullable<ReturnType<KeyLedger['seen']>>;

/**
 * What the ledger notes of the key store in a folder. To be read before the store, which may get more keys.
 * @throws MillraceError ledger_forged, proof_unusable
 */
export function seenIn(path: string, ledger: KeyLedger | null): Seen | null {
  return ledger?.seen(resolve(path)) ?? null;
}

/**
 * What shows that a folder does not have the key store noted last: an older copy, another store, or none, as without its mount.
 * @param ring null when there is no store
 */
export function notTheOneSeen(
  ring: Pick<KeyRing, 'store' | 'has' | 'counts'> | null,
  seen: Seen | null,
): readonly KeyProblem[] {
  if (seen === null) return [];
  const { path, store, newest } = seen;
  if (ring === null)
    return stale(`there is no key store, and ${path} says that there was one: it is not mounted, or lost`);
  if (ring.store !== store) return stale(`it is another key store than the one that ${path} names`);
  // The newest key may be in a damaged slot.
  if (newest === null || ring.has(newest) || ring.counts.damaged > 0) return [];
  return stale(`it lacks keys that ${path} says it had: an older copy was restored`);
}

function stale(detail: string): readonly KeyProblem[] {
  return [{ code: 'keys_stale', detail }];
}

/** All that shows that a store is not as it was left. @param ledger null without one: what the file says of itself */
export function problemsOf(
  ring: KeyRing,
  ledger: KeyLedger | null,
  seen: Seen | null,
): readonly KeyProblem[] {
  const problems = ring.problems(ledger);
  const isStale = problems.some(({ code }) => code === 'keys_stale');
  return isStale ? problems : [...problems, ...notTheOneSeen(ring, seen)];
}

/** @throws MillraceError keys_stale or ledger_forged when there are problems */
export function refuse(path: string, problems: readonly KeyProblem[]): void {
  if (problems.length === 0) return;
  const code = problems.every((problem) => problem.code === 'ledger_forged') ? 'ledger_forged' : 'keys_stale';
  const details = problems.map(({ detail }) => detail).join('; ');
  const what =
    code === 'ledger_forged'
      ? ''
      : '. Restore the newest copy. If there is none: millrace keys catch-up --config FILE';
  throw new MillraceError(code, `${path}: ${details}${what}`);
}
