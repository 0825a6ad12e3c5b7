import { resolve } from 'node:path';
import { MillraceError } from '../../core/errors.ts';
import type { KeyLedger } from '../../core/proof.ts';
import type { KeyRing } from './key-ring.ts';
import type { KeyProblem } from './tombstones.ts';

type Seen = NonNullable<ReturnType<KeyLedger['seen']>>;

/**
 * What the ledger says of a folder of keys; to be asked before its file is read, which may get more keys meanwhile.
 * @param ledger null where it is not at hand
 * @throws MillraceError ledger_forged, proof_unusable
 */
export function seenIn(path: string, ledger: KeyLedger | null): Seen | null {
  return ledger?.seen(resolve(path)) ?? null;
}

/**
 * What tells that a folder has not the key store that it had last: an older copy, another one, or none, as where a disk is not mounted.
 * @param ring null for none
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
  // A slot that is damaged may have been it.
  if (newest === null || ring.has(newest) || ring.counts.damaged > 0) return [];
  return stale(`it lacks keys that ${path} says it had: an older copy was restored`);
}

function stale(detail: string): readonly KeyProblem[] {
  return [{ code: 'keys_stale', detail }];
}

/** All that tells that a store is not as it was left. */
export function problemsOf(
  ring: KeyRing,
  ledger: KeyLedger | null,
  seen: Seen | null,
): readonly KeyProblem[] {
  const problems = ring.problems(ledger);
  const isNamed = problems.some(({ code }) => code === 'keys_stale');
  return isNamed ? problems : [...problems, ...notTheOneSeen(ring, seen)];
}

/** @throws MillraceError keys_stale, ledger_forged when there are any */
export function refuse(path: string, problems: readonly KeyProblem[]): void {
  if (problems.length === 0) return;
  const code = problems.every((problem) => problem.code === 'ledger_forged') ? 'ledger_forged' : 'keys_stale';
  const wayOut =
    code === 'ledger_forged'
      ? ''
      : '. Restore the newest copy. If there is none: millrace keys catch-up --config FILE';
  throw new MillraceError(code, `${path}: ${problems.map(({ detail }) => detail).join('; ')}${wayOut}`);
}
