import { EXIT } from '../core/errors.ts';
import { visible } from '../lib/visible.ts';
import { print, type Io } from './io.ts';

/** Entries that are named; `--json` has all of them. */
const NAMED = 100;

/** An erasure that is not done, and what it has taken out so far. */
export interface OpenErasure {
  readonly request: string;
  readonly entries: number;
}

export interface ProveReport {
  readonly size: number;
  readonly events: number;
  readonly archived: number;
  readonly erased: number;
  readonly closed: number;
  readonly quarantined: number;
  readonly dead: number;
  readonly dropped: number;
  /** Entries of events of which it cannot be said whether an archive should have them. */
  readonly unclear: readonly number[];
  readonly missing: readonly number[];
  readonly open: readonly OpenErasure[];
  /** Events that a sender has receipts for, and only an erasure accounts for that was not named as asked for. */
  readonly unconfirmed: readonly { readonly id: string; readonly erasure: string }[];
  readonly false_receipts: readonly { readonly id: string; readonly detail: string }[];
  /** Of the log, as lines of a manifest have it. */
  readonly false_heads: readonly { readonly file: string; readonly size: number }[];
}

/** How the proof ends, for a process and for a person. */
export function verdictOf(report: ProveReport): { readonly exit: number; readonly text: string } {
  const { size, missing, false_receipts: receipts, false_heads: heads } = report;
  const { open, unclear, unconfirmed } = report;
  if (missing.length + receipts.length + heads.length > 0)
    return {
      exit: EXIT.difference,
      text: `${missing.length} events are missing, ${receipts.length} receipts are not as the log has it`,
    };
  if (open.length > 0) return { exit: EXIT.partial, text: 'an erasure is not done' };
  if (unconfirmed.length > 0)
    return {
      exit: EXIT.partial,
      text: `${unconfirmed.length} events of the sender were erased: whether that was asked for is to be confirmed`,
    };
  if (unclear.length > 0) return { exit: EXIT.partial, text: `${unclear.length} events are unclear` };
  if (size === 0) return { exit: EXIT.done, text: 'the log is empty: there is nothing to prove' };
  return { exit: EXIT.done, text: 'every event is accounted for' };
}

export function showProof(io: Io, report: ProveReport): void {
  const { size, quarantined, dead, dropped, closed } = report;
  print(io, `log        ${size} entries, ${report.events} of them events`);
  print(io, `found      ${report.archived} in the archive, ${report.erased} on receipts of erasures`);
  if (quarantined + dead > 0) print(io, `waiting    ${quarantined} in quarantine, ${dead} dead letters`);
  if (dropped > 0)
    print(io, `dropped    ${dropped} by a person, from quarantine or dead letters: \`millrace audit list\``);
  if (closed > 0)
    print(io, `closed     ${closed} sealed records without a key: what they are of cannot be told`);
  for (const { id, detail } of report.false_receipts) print(io, visible(`receipt    ${id}: ${detail}`));
  showEntries(io, 'missing   ', report.missing, '');
  const why = ': not all sinks have it as a dead letter, or it is not known whether it was dropped';
  showEntries(io, 'unclear   ', report.unclear, why);
  for (const { request, entries } of report.open)
    print(
      io,
      `open       erasure ${request} has taken out ${entries} events and is not done: \`millrace erase --run\` says why`,
    );
  for (const { id, erasure } of report.unconfirmed.slice(0, NAMED))
    print(
      io,
      visible(`erased     ${id}: by erasure ${erasure}; if it was asked for, say --erasure ${erasure}`),
    );
  if (report.unconfirmed.length > NAMED)
    print(io, `erased     and ${report.unconfirmed.length - NAMED} more`);
  for (const { file, size: had } of report.false_heads)
    print(
      io,
      visible(`log        had ${had} entries when ${file} was listed, and other ones: it was made again`),
    );
  print(io, verdictOf(report).text);
}

function showEntries(io: Io, label: string, entries: readonly number[], why: string): void {
  for (const index of entries.slice(0, NAMED)) print(io, `${label} entry ${index}${why}`);
  if (entries.length > NAMED) print(io, `${label} and ${entries.length - NAMED} more`);
}
