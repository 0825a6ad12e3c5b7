import { EXIT } from '../core/errors.ts';
import { print, printLine, type Io } from './io.ts';

/** Entries that are named; `--json` has all of them. */
const NAMED = 100;

export interface ProveReport {
  readonly size: number;
  readonly events: number;
  readonly archived: number;
  readonly erased: number;
  readonly closed: number;
  readonly quarantined: number;
  readonly dead: number;
  readonly dropped: number;
  /** Entries that an archive may or may not have to contain. */
  readonly unclear: readonly number[];
  readonly missing: readonly number[];
  /** Unfinished erasures, and how many events each has removed so far. */
  readonly open: readonly { readonly request: string; readonly entries: number }[];
  /** Events with a sender's receipt that were erased by an erasure which --erasure does not name. */
  readonly unconfirmed: readonly { readonly id: string; readonly erasure: string }[];
  readonly false_receipts: readonly { readonly id: string; readonly detail: string }[];
  /** Heads of the log, in lines of a manifest, that the log does not have. */
  readonly false_heads: readonly { readonly file: string; readonly size: number }[];
}

/** Exit code and last line. */
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
  const { size, quarantined, dead, dropped, closed, unconfirmed } = report;
  print(io, `log        ${size} entries, ${report.events} of them events`);
  print(io, `found      ${report.archived} in the archive, ${report.erased} on receipts of erasures`);
  if (quarantined + dead > 0) print(io, `waiting    ${quarantined} in quarantine, ${dead} dead letters`);
  if (dropped > 0)
    print(io, `dropped    ${dropped} by a person, from quarantine or dead letters: \`millrace audit list\``);
  if (closed > 0) print(io, `closed     ${closed} sealed records could not be opened without a key`);
  for (const { id, detail } of report.false_receipts) printLine(io, `receipt    ${id}: ${detail}`);
  showEntries(io, 'missing   ', report.missing, '');
  const why = ': not all sinks have it as a dead letter, or it is not known whether it was dropped';
  showEntries(io, 'unclear   ', report.unclear, why);
  for (const { request, entries } of report.open)
    print(
      io,
      `open       erasure ${request} has removed ${entries} events and is not done: \`millrace erase --run\` says why`,
    );
  for (const { id, erasure } of unconfirmed.slice(0, NAMED))
    printLine(io, `erased     ${id}: by erasure ${erasure}; if it was asked for, add --erasure ${erasure}`);
  if (unconfirmed.length > NAMED) print(io, `erased     and ${unconfirmed.length - NAMED} more`);
  for (const { file, size: had } of report.false_heads)
    printLine(io, `log        was made again: it had ${had} other entries when ${file} was listed`);
  print(io, verdictOf(report).text);
}

function showEntries(io: Io, label: string, entries: readonly number[], why: string): void {
  for (const index of entries.slice(0, NAMED)) print(io, `${label} entry ${index}${why}`);
  if (entries.length > NAMED) print(io, `${label} and ${entries.length - NAMED} more`);
}
